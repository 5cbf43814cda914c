// Chat endpoints and Ollama: log-probabilities by token text. System One: the server's own
// decision.
#include <algorithm>
#include <cmath>

#include "protocol_base.h"

namespace preval::test_server {

namespace {

/// Text and list of the best tokens, in the form that OpenAI's interface has given them.
class TextProtocol : public BaseProtocol {
 public:
  using BaseProtocol::BaseProtocol;

 protected:
  /// The continuation of a text; its k best are in numbers_.
  Entry read(const std::string& text, int k, const std::string& spoil) {
    prompt_ = tokenizer_.tokens_of(text);
    const Continuation next(tokenizer_, prompt_);
    numbers_ = {};
    next.best(static_cast<std::size_t>(k), numbers_.entries);
    numbers_.spoil(spoil);
    return next.first();
  }

  void append_token(std::string& out, const Entry& entry) const {
    const std::string text = tokenizer_.text_of(entry.first);
    out += R"({"token":)";
    append_quoted(out, text);
    out += R"(,"logprob":)";
    append_real(out, entry.second);
    out += R"(,"bytes":[)";
    for (const char byte : text) {
      append(out, static_cast<int>(static_cast<unsigned char>(byte)));
      out += ',';
    }
    if (out.back() == ',') out.pop_back();
    out += ']';
  }

  void append_position(std::string& out, const Entry& sampled) const {
    append_token(out, sampled);
    out += R"(,"top_logprobs":[)";
    for (const Entry& entry : numbers_.entries) {
      append_token(out, entry);
      out += "},";
    }
    if (out.back() == ',') out.pop_back();
    out += "]}";
  }

  /// The list of positions behind its key and a colon, or what stands in its place.
  void append_positions(std::string& out, const Entry& sampled) const {
    if (numbers_.field == Numbers::Field::null) {
      out += "null";
      return;
    }
    out += '[';
    if (numbers_.field == Numbers::Field::there) append_position(out, sampled);
    out += ']';
  }

  int limit() const { return std::min(script_.max_logprobs, 20); }
};

class OpenAiChat final : public TextProtocol {
 public:
  using TextProtocol::TextProtocol;

  void answer(const Request& request, const std::string& spoil, Reply& reply) override {
    if (is(request, "POST", "/v1/chat/completions")) return complete(request, spoil, reply);
    if (!is(request, "GET", "/v1/models")) return not_found(reply);
    reply.body =
        Json{{"object", "list"},
             {"data", {{{"id", script_.model}, {"object", "model"}, {"owned_by", "test"}}}}}
            .dump();
  }

 private:
  void complete(const Request& request, const std::string& spoil, Reply& reply) {
    const Json body = Json::parse(request.body);
    if (!body.contains("messages") || !body["messages"].is_array()) {
      return openai_error(reply, 400, "messages: a list was expected", "invalid_request_error");
    }
    if (body.value("model", script_.model) != script_.model) {
      return openai_error(reply, 404, "The model does not exist.", "invalid_request_error");
    }
    const int k = body.value("top_logprobs", 0);
    if (k > limit()) {
      return openai_error(reply, 400,
                          "Invalid value for 'top_logprobs': must be less than or equal to " +
                              std::to_string(limit()),
                          "invalid_request_error");
    }
    const Entry sampled = read(chat(body), k, spoil);
    std::string& out = reply.body;
    out += R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":)";
    append_quoted(out, script_.model);
    out += R"(,"choices":[{"index":0,"message":{"role":"assistant","content":)";
    append_quoted(out, tokenizer_.text_of(sampled.first));
    out += R"(,"refusal":null})";
    if (numbers_.field == Numbers::Field::null) {
      out += R"(,"logprobs":null)";
    } else if (numbers_.field != Numbers::Field::absent) {
      out += R"(,"logprobs":{"content":)";
      append_positions(out, sampled);
      out += '}';
    }
    out += R"(,"finish_reason":"length"}],"usage":{"prompt_tokens":)";
    append(out, prompt_.size());
    out += R"(,"completion_tokens":1,"total_tokens":)";
    append(out, prompt_.size() + 1);
    out += R"(},"system_fingerprint":)";
    append_quoted(out, script_.version);
    out += '}';
  }
};

class Ollama final : public TextProtocol {
 public:
  using TextProtocol::TextProtocol;

  void answer(const Request& request, const std::string& spoil, Reply& reply) override {
    const bool chat = is(request, "POST", "/api/chat");
    if (chat || is(request, "POST", "/api/generate")) return generate(request, chat, spoil, reply);
    if (is(request, "GET", "/api/version")) {
      reply.body = Json{{"version", script_.version}}.dump();
    } else if (is(request, "POST", "/api/show")) {
      reply.body = Json{
          {"template", "{{ .Prompt }}"},
          {"details",
           {{"format", "gguf"},
            {"family", "test"},
            {"parameter_size", "1M"},
            {"quantization_level",
             "F16"}}}}.dump();
    } else if (is(request, "GET", "/api/tags")) {
      reply.body = Json{{"models",
                         {{{"name", script_.model},
                           {"model", script_.model},
                           {"digest", std::string(64, '5')}}}}}
                       .dump();
    } else {
      reply.status = 404;
      reply.content_type = "text/plain";
      reply.body = "404 page not found";
    }
  }

 private:
  void generate(const Request& request, bool with_messages, const std::string& spoil,
                Reply& reply) {
    const Json body = Json::parse(request.body);
    if (!body.contains("model") || !body["model"].is_string()) {
      return error(reply, 400,
                   {{"error", "json: cannot unmarshal array into model of type string"}});
    }
    if (body["model"] != script_.model) {
      return error(reply, 404,
                   {{"error", "model '" + body["model"].get<std::string>() + "' not found"}});
    }
    const int k = body.value("top_logprobs", 0);
    if (k > limit()) {
      return error(reply, 400,
                   {{"error", "top_logprobs must be between 0 and " + std::to_string(limit())}});
    }
    const Entry sampled =
        read(with_messages ? chat(body) : body.at("prompt").get<std::string>(), k, spoil);
    std::string& out = reply.body;
    out += R"({"model":)";
    append_quoted(out, script_.model);
    out += R"(,"created_at":"2026-01-01T00:00:00Z",)";
    out += with_messages ? R"("message":{"role":"assistant","content":)" : R"("response":)";
    append_quoted(out, tokenizer_.text_of(sampled.first));
    out += with_messages ? "}," : ",";
    out += R"("done":true,"done_reason":"length","prompt_eval_count":)";
    append(out, prompt_.size());
    out += R"(,"eval_count":1)";
    if (numbers_.field != Numbers::Field::absent) {
      out += R"(,"logprobs":)";
      append_positions(out, sampled);
    }
    out += '}';
  }
};

class SystemOne final : public BaseProtocol {
 public:
  using BaseProtocol::BaseProtocol;

  void answer(const Request& request, const std::string& spoil, Reply& reply) override {
    if (is(request, "GET", "/v1/models")) {
      reply.body = Json{{"data", {{{"id", script_.model}}}}}.dump();
      return;
    }
    if (is(request, "GET", "/health")) {
      reply.body = R"({"status":"ok"})";
      return;
    }
    if (!is(request, "POST", "/v1/systemone")) return not_found(reply);
    const Json body = Json::parse(request.body);
    for (const char* field : {"state", "questions"}) {
      if (!body.contains(field)) {
        return error(
            reply, 422,
            {{"detail",
              {{{"loc", {"body", field}}, {"msg", "Field required"}, {"type", "missing"}}}}});
      }
    }
    Json answers = Json::object();
    for (const auto& [id, question] : body["questions"].items()) {
      answers[id] = decide(body["state"].dump() + question.dump(), question, spoil);
    }
    const std::size_t tokens = request.body.size() / 4;
    reply.body = Json{{"model", script_.model},
                      {"answers", answers},
                      {"usage", {{"input_tokens", tokens}, {"output_tokens", 0}}}}
                     .dump();
  }

 private:
  /// Two decimals, as the hosted service prints them.
  static double rounded(double p) { return std::round(p * 100) / 100; }

  Json decide(const std::string& text, const Json& question, const std::string& spoil) {
    std::vector<std::string> names;
    if (question.at("criteria").is_array()) {
      for (std::size_t i = 0; i < question["criteria"].size(); ++i)
        names.push_back(std::to_string(i));
    } else {
      for (const auto& [name, meaning] : question["criteria"].items()) names.push_back(name);
    }
    const std::uint64_t hash = Continuation(tokenizer_, tokenizer_.tokens_of(text)).hash();
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::uint64_t draw = (hash ^ (i * 0x9E3779B97F4A7C15ULL)) * 0xBF58476D1CE4E5B9ULL;
      weights.push_back(std::exp(3 * static_cast<double>(draw >> 11) * 0x1p-53));
      sum += weights.back();
    }
    std::size_t best = 0;
    Json probabilities = Json::object();
    double expected = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (weights[i] > weights[best]) best = i;
      expected += static_cast<double>(i) * weights[i] / sum;
      probabilities[names[i]] = rounded(weights[i] / sum);
    }
    if (spoil == "no_logprobs") probabilities = Json::object();
    if (question.at("type") == "noul") {
      return {{"type", "noul"}, {"noul", rounded(weights[names[0] == "true" ? 0 : 1] / sum)}};
    }
    if (question["type"] == "score") {
      return {{"type", "score"}, {"score", rounded(expected)}, {"probabilities", probabilities}};
    }
    return {{"type", "choice"},
            {"choice", names[best]},
            {"confidence", rounded(weights[best] / sum)},
            {"probabilities", probabilities}};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_openai_chat(const Script& script) {
  return std::make_unique<OpenAiChat>(script);
}
std::unique_ptr<Protocol> make_ollama(const Script& script) {
  return std::make_unique<Ollama>(script);
}
std::unique_ptr<Protocol> make_systemone(const Script& script) {
  return std::make_unique<SystemOne>(script);
}

}  // namespace preval::test_server
