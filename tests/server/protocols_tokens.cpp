// vLLM, SGLang and llama.cpp: prompts as token ids, log-probabilities by token id.
#include <algorithm>
#include <cmath>

#include "protocol_base.h"

namespace preval::test_server {

namespace {

constexpr std::size_t kMostListed = kVocabulary;

/// What vLLM and SGLang have in common.
class TokenProtocol : public BaseProtocol {
 public:
  using BaseProtocol::BaseProtocol;

 protected:
  void tokenise(const Request& request, Reply& reply) {
    const Json body = Json::parse(request.body);
    const bool messages = body.contains("messages");
    std::vector<Id> ids;
    if (!messages && body.value("add_special_tokens", true)) ids.push_back(kBos);
    const std::string text = messages ? chat(body) : body.at("prompt").get<std::string>();
    for (const Id id : tokenizer_.tokens_of(text)) ids.push_back(id);
    reply.body =
        Json{{"count", ids.size()}, {"max_model_len", script_.context}, {"tokens", ids}}.dump();
  }

  void list_models(Reply& reply, const char* owner) const {
    reply.body = Json{{"object", "list"},
                      {"data",
                       {{{"id", script_.model},
                         {"object", "model"},
                         {"created", 1'700'000'000},
                         {"owned_by", owner},
                         {"max_model_len", script_.context}}}}}
                     .dump();
  }

  void append_ids(std::string& out, const std::vector<Id>& ids) const {
    out += '[';
    for (const Id id : ids) {
      append(out, id);
      out += ',';
    }
    if (out.back() == ',') out.pop_back();
    out += ']';
  }

  bool too_long(std::size_t tokens, Reply& reply) const {
    if (static_cast<int>(tokens) < script_.context) return false;
    openai_error(reply, 400,
                 "This model's maximum context length is " + std::to_string(script_.context) +
                     " tokens. However, your prompt contains " + std::to_string(tokens) +
                     " input tokens.");
    return true;
  }
};

class Vllm final : public TokenProtocol {
 public:
  using TokenProtocol::TokenProtocol;

  void answer(const Request& request, const std::string& spoil, Reply& reply) override {
    if (is(request, "POST", "/v1/completions")) return complete(request.body, spoil, reply);
    if (is(request, "POST", "/tokenize")) return tokenise(request, reply);
    if (is(request, "GET", "/v1/models")) return list_models(reply, "vllm");
    if (is(request, "GET", "/health")) return;
    if (is(request, "GET", "/version")) {
      reply.body = Json{{"version", script_.version}}.dump();
    } else if (is(request, "GET", "/metrics")) {
      reply.content_type = "text/plain; version=0.0.4";
      reply.body =
          "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\","
          "cache_dtype=\"auto\",engine=\"0\"} 1.0\n";
    } else {
      not_found(reply);
    }
  }

 private:
  void complete(std::string_view body, const std::string& spoil, Reply& reply) {
    if (!integers_of(value_of(body, "\"prompt\""), prompt_) || !number_of(body, "\"max_tokens\"")) {
      return openai_error(reply, 400, "prompt and max_tokens: not what was expected");
    }
    if (too_long(prompt_.size(), reply)) return;
    const auto k = static_cast<int>(number_of(body, "\"logprobs\"").value_or(0));
    if (k > script_.max_logprobs) {
      return openai_error(
          reply, 400,
          "Requested sample logprobs of " + std::to_string(k) +
              ", which is greater than max allowed: " + std::to_string(script_.max_logprobs));
    }
    const bool by_id = script_.by_id && integers_of(value_of(body, "\"logprob_token_ids\""), ids_);
    if (by_id && static_cast<int>(ids_.size()) > script_.max_ids) {
      return openai_error(
          reply, 400,
          "Requested logprob_token_ids of length " + std::to_string(ids_.size()) +
              ", which is greater than max allowed: " + std::to_string(script_.max_ids));
    }
    const Continuation next(tokenizer_, prompt_);
    numbers_ = {};
    if (by_id) {
      numbers_.entries.push_back(next.first());  // the sampled token, whatever was asked for
      for (const Id id : ids_) {
        if (id != next.first().first) numbers_.entries.emplace_back(id, next.logprob(id));
      }
    } else {
      next.best(static_cast<std::size_t>(std::max(k, 1)), numbers_.entries);
    }
    numbers_.spoil(spoil);
    write(next.first(), reply.body);
  }

  void write(const Entry& sampled, std::string& out) {
    out += R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":)";
    append_quoted(out, script_.model);
    out += R"(,"choices":[{"index":0,"text":)";
    append_quoted(out, tokenizer_.text_of(sampled.first));
    if (numbers_.field == Numbers::Field::null) out += R"(,"logprobs":null)";
    if (numbers_.field == Numbers::Field::there || numbers_.field == Numbers::Field::empty) {
      out += R"(,"logprobs":{"text_offset":[0],"token_logprobs":[)";
      append_real(out, sampled.second);
      out += R"(],"tokens":["token_id:)";
      append(out, sampled.first);
      out += R"("],"top_logprobs":[)";
      if (numbers_.field == Numbers::Field::there) write_map(out);
      out += "]}";
    }
    out += R"(,"finish_reason":"length","stop_reason":null,"token_ids":[)";
    append(out, sampled.first);
    out += R"(],"prompt_logprobs":null,"prompt_token_ids":)";
    const std::size_t tokens = prompt_.size();
    if (numbers_.longer_echo) prompt_.insert(prompt_.begin(), kBos);
    append_ids(out, prompt_);
    out += R"(}],"usage":{"prompt_tokens":)";
    append(out, tokens);
    out += R"(,"total_tokens":)";
    append(out, tokens + 1);
    out += R"(,"completion_tokens":1,"prompt_tokens_details":null}})";
  }

  void write_map(std::string& out) const {
    out += '{';
    for (const auto& [id, logprob] : numbers_.entries) {
      if (numbers_.text_keys) {
        append_quoted(out, tokenizer_.text_of(id));
        out += ':';
      } else {
        out += "\"token_id:";
        append(out, id);
        out += "\":";
      }
      append_real(out, logprob);
      out += ',';
    }
    if (out.back() == ',') out.pop_back();
    out += '}';
  }
};

class Sglang final : public TokenProtocol {
 public:
  using TokenProtocol::TokenProtocol;

  void answer(const Request& request, const std::string& spoil, Reply& reply) override {
    if (is(request, "POST", "/generate")) return generate(request.body, spoil, reply);
    if (is(request, "POST", "/tokenize")) return tokenise(request, reply);
    if (is(request, "GET", "/v1/models")) return list_models(reply, "sglang");
    if (is(request, "GET", "/health")) return;
    if (is(request, "GET", "/model_info") || is(request, "GET", "/get_model_info")) {
      reply.body = Json{{"model_path", "/models/" + script_.model},
                        {"served_model_name", script_.model},
                        {"is_generation", true},
                        {"weight_version", script_.version}}
                       .dump();
    } else if (is(request, "GET", "/server_info") || is(request, "GET", "/get_server_info")) {
      reply.body = Json{
          {"version", script_.version},
          {"kv_cache_dtype", "auto"},
          {"dtype", "bfloat16"},
          {"attention_backend",
           "triton"}}.dump();
    } else {
      not_found(reply);
    }
  }

 private:
  void generate(std::string_view body, const std::string& spoil, Reply& reply) {
    if (!integers_of(value_of(body, "\"input_ids\""), prompt_)) {
      return openai_error(reply, 400, "input_ids: a list of integers was expected");
    }
    if (too_long(prompt_.size(), reply)) return;
    const Continuation next(tokenizer_, prompt_);
    numbers_ = {};
    const bool by_id = script_.by_id && integers_of(value_of(body, "\"token_ids_logprob\""), ids_);
    if (by_id) {
      for (const Id id : ids_) numbers_.entries.emplace_back(id, next.logprob(id));
    } else {
      next.best(static_cast<std::size_t>(number_of(body, "\"top_logprobs_num\"").value_or(0)),
                numbers_.entries);
    }
    numbers_.spoil(spoil);
    write(next.first(), by_id ? "output_token_ids_logprobs" : "output_top_logprobs", reply.body);
  }

  void write(const Entry& sampled, const char* field, std::string& out) const {
    out += R"({"text":)";
    append_quoted(out, tokenizer_.text_of(sampled.first));
    out += R"(,"output_ids":[)";
    append(out, sampled.first);
    out +=
        R"(],"meta_info":{"id":"1","finish_reason":{"type":"length","length":1},"prompt_tokens":)";
    append(out, prompt_.size() + (numbers_.longer_echo ? 1 : 0));
    out += R"(,"weight_version":)";
    append_quoted(out, script_.version);
    out += R"(,"completion_tokens":1,"cached_tokens":0,"output_token_logprobs":[[)";
    append_real(out, sampled.second);
    out += ',';
    append(out, sampled.first);
    out += ",null]]";
    if (numbers_.field != Numbers::Field::absent) {
      out += std::string(",\"") + field + "\":";
      if (numbers_.field == Numbers::Field::null) out += "null";
      if (numbers_.field == Numbers::Field::empty) out += "[]";
      if (numbers_.field == Numbers::Field::there) write_list(out);
    }
    out += R"(,"e2e_latency":0.001}})";
  }

  void write_list(std::string& out) const {
    out += "[[";
    for (const auto& [id, logprob] : numbers_.entries) {
      out += '[';
      append_real(out, logprob);
      out += ',';
      append(out, id);
      out += ",null],";
    }
    if (out.back() == ',') out.pop_back();
    out += "]]";
  }
};

class LlamaCpp final : public BaseProtocol {
 public:
  using BaseProtocol::BaseProtocol;

  void answer(const Request& request, const std::string& spoil, Reply& reply) override {
    if (is(request, "POST", "/completion")) return complete(request.body, spoil, reply);
    if (is(request, "GET", "/health")) {
      reply.body = R"({"status":"ok"})";
    } else if (is(request, "POST", "/apply-template")) {
      reply.body = Json{{"prompt", chat(Json::parse(request.body))}}.dump();
    } else if (is(request, "POST", "/tokenize")) {
      const Json body = Json::parse(request.body);
      std::vector<Id> ids = tokenizer_.tokens_of(body.at("content").get<std::string>());
      if (body.value("add_special", false)) ids.insert(ids.begin(), kBos);
      reply.body = Json{{"tokens", ids}}.dump();
    } else if (is(request, "GET", "/props")) {
      reply.body = Json{{"default_generation_settings", {{"n_ctx", script_.context}}},
                        {"total_slots", 1},
                        {"model_path", "/models/" + script_.model},
                        {"model_ftype", "F16"},
                        {"chat_template", "{{ messages }}"},
                        {"build_info", script_.version}}
                       .dump();
    } else if (is(request, "GET", "/v1/models")) {
      reply.body = Json{{"data",
                         {{{"id", script_.model},
                           {"owned_by", "llamacpp"},
                           {"meta", {{"n_vocab", kVocabulary}, {"n_ctx_train", 4096}}}}}}}
                       .dump();
    } else {
      llama_error(reply, 404, "not_found_error", "File Not Found");
    }
  }

 private:
  static void llama_error(Reply& reply, int status, const char* type, const std::string& message) {
    error(reply, status, {{"error", {{"code", status}, {"message", message}, {"type", type}}}});
  }

  /// The tokens of "logit_bias":[[id,bias],…].
  bool biased(std::string_view body) {
    std::string_view text = value_of(body, "\"logit_bias\"");
    std::vector<Id> pair;
    ids_.clear();
    while (text.size() > 1 && (text[0] == '[' || text[0] == ',') && text[1] == '[') {
      text.remove_prefix(1);
      if (!integers_of(text, pair) || pair.size() != 2) break;
      ids_.push_back(pair[0]);
      text.remove_prefix(std::min(text.size(), text.find(']') + 1));
    }
    return !ids_.empty();
  }

  void complete(std::string_view body, const std::string& spoil, Reply& reply) {
    if (!integers_of(value_of(body, "\"prompt\""), prompt_) || !number_of(body, "\"n_predict\"")) {
      return llama_error(reply, 400, "invalid_request_error", "type must be number, but is string");
    }
    if (static_cast<int>(prompt_.size()) >= script_.context) {
      return llama_error(reply, 400, "exceed_context_size_error",
                         "the request exceeds the available context size");
    }
    const double asked = number_of(body, "\"n_probs\"").value_or(0);
    const std::size_t k = std::min(static_cast<std::size_t>(std::max(asked, 0.0)), kMostListed);
    const Continuation next(tokenizer_, prompt_);
    const bool restricted =
        value_of(body, "\"post_sampling_probs\"").starts_with("true") && biased(body);
    numbers_ = {};
    if (restricted) {
      double sum = 0;
      for (const Id id : ids_) sum += std::exp(next.logprob(id));
      for (const Id id : ids_) numbers_.entries.emplace_back(id, std::exp(next.logprob(id)) / sum);
    } else {
      next.best(k, numbers_.entries);
    }
    numbers_.spoil(spoil);
    write(restricted ? "prob" : "logprob", next.first(), reply.body);
  }

  void write(const char* value, const Entry& sampled, std::string& out) const {
    const std::string list = std::string("top_") + value + "s";
    out += R"({"index":0,"content":)";
    append_quoted(out, tokenizer_.text_of(sampled.first));
    out += R"(,"tokens":[],"id_slot":0,"stop":true,"model":)";
    append_quoted(out, script_.model);
    out += R"(,"tokens_predicted":1,"tokens_evaluated":)";
    append(out, prompt_.size() + (numbers_.longer_echo ? 1 : 0));
    out += R"(,"has_new_line":false,"truncated":false,"stop_type":"limit","stopping_word":"",)"
           R"("timings":{"cache_n":0,"prompt_n":)";
    append(out, prompt_.size());
    out += R"(,"predicted_n":1})";
    if (numbers_.field == Numbers::Field::null) out += R"(,"completion_probabilities":null)";
    if (numbers_.field == Numbers::Field::empty) out += R"(,"completion_probabilities":[])";
    if (numbers_.field == Numbers::Field::there) {
      out += R"(,"completion_probabilities":[{"id":)";
      append(out, sampled.first);
      out += R"(,"token":"","bytes":[],")" + list + "\":[";
      for (const auto& [id, number] : numbers_.entries) {
        out += R"({"id":)";
        append(out, id);
        out += R"(,"token":"","bytes":[],")";
        out += value;
        out += "\":";
        append_real(out, number);
        out += "},";
      }
      if (out.back() == ',') out.pop_back();
      out += "]}]";
    }
    out += '}';
  }
};

}  // namespace

std::unique_ptr<Protocol> make_vllm(const Script& script) { return std::make_unique<Vllm>(script); }
std::unique_ptr<Protocol> make_sglang(const Script& script) {
  return std::make_unique<Sglang>(script);
}
std::unique_ptr<Protocol> make_llamacpp(const Script& script) {
  return std::make_unique<LlamaCpp>(script);
}

}  // namespace preval::test_server
