// A preflight against a small model of the server, which can be made to misbehave in one way at a
// time.
#include <cmath>

#include "backend/llamacpp.h"
#include "backend/llamacpp_replies.h"

using namespace preval;
using namespace preval::test;

namespace {

/// Six tokens of vocabulary with fixed values; labels "yes" and "no" are tokens 3 and 5.
struct FakeServer {
  int context = 2048, slots = 1, cached = 0;
  std::string model = "/m/tiny.gguf";
  double drift = 0;  ///< added to token 3 at every read but the first two
  double restricted_yes = std::exp(-3.0) / (std::exp(-3.0) + std::exp(-4.0));
  double whole_yes = -3.0;  ///< token 3 in a read of the whole vocabulary
  bool doubled_bos = false, accepts_nonsense = false, no_label = false;
  std::string label_tokens_no = "[9,5]";
  int reads = 0;

  HttpReply operator()(const HttpRequest& request) {
    if (request.path == "/props") {
      return ok_reply(fmt::format(
          R"({{"default_generation_settings":{{"n_ctx":{}}},"total_slots":{},"model_path":"{}",)"
          R"("model_ftype":"Q4_1","build_info":"b1","chat_template":"t"}})",
          context, slots, model));
    }
    if (request.path == "/v1/models") {
      return ok_reply(fmt::format(R"({{"data":[{{"id":"{}","meta":{{"n_vocab":6}}}}]}})", model));
    }
    if (request.path == "/apply-template") return ok_reply(R"({"prompt":"<s>hot?"})");
    const Json body = Json::parse(request.body);
    if (request.path == "/tokenize") return tokenise(body["content"]);
    if (!body["n_predict"].is_number()) {
      return accepts_nonsense
                 ? ok_reply("{}")
                 : status_reply(
                       400,
                       R"({"error":{"message":"n_predict must be a number","type":"invalid_request_error"}})");
    }
    return complete(body);
  }

 private:
  HttpReply tokenise(const std::string& text) const {
    if (text.empty()) return tokens_reply({1});
    if (text == "decision: yes") return tokens_reply({9, 3});
    if (text == "decision: no") return ok_reply("{\"tokens\":" + label_tokens_no + "}");
    return doubled_bos ? tokens_reply({1, 1, 4}) : tokens_reply({1, 4});
  }

  HttpReply complete(const Json& body) {
    const CompletionFacts facts{3, cached, false, model};
    if (body["post_sampling_probs"] == true) {
      return restricted_reply({{3, restricted_yes}, {5, 1 - restricted_yes}}, facts);
    }
    Entries all{{0, -0.5}, {3, -3.0}, {5, -4.0}, {1, -5.0}, {2, -6.0}, {4, -7.0}};
    if (no_label) all = {{0, -0.5}, {1, -1.0}, {2, -6.0}, {4, -7.0}};
    if (++reads > 2 && !no_label) all[1].second += drift;
    const auto count = body["n_probs"].get<std::size_t>();
    if (count > all.size() && !no_label) all[1].second = whole_yes;
    all.resize(std::min(count, all.size()));
    return raw_reply(all, facts);
  }
};

struct Setting {
  BackendSpec spec;
  Checkpoint checkpoint;
  Setting() {
    spec.kind = "llamacpp";
    spec.kv_cache = "q8_0";
    spec.raw_probs = 2;
    spec.k = 3;
    checkpoint.files = {{"tiny.gguf", "", 0}};
  }
};

Outcome<std::vector<Finding>> preflight(FakeServer server, const Setting& setting = {}) {
  const LlamaCpp backend(setting.spec, setting.checkpoint, {});
  Record record;
  record.id = "r-1";
  Prompt prompt;
  prompt.system = "Hot?";
  prompt.lead = "decision: ";
  prompt.labels = {"yes", "no"};
  return converse_with<std::vector<Finding>>(
      *backend.preflight({&record, &prompt, "none", 0}),
      [&](const HttpRequest& request) { return server(request); });
}

/// "capability: verdict (evidence)" of those that are not well.
std::vector<std::string> problems(FakeServer server, const Setting& setting = {}) {
  std::vector<std::string> result;
  const auto outcome = preflight(std::move(server), setting);
  for (const Finding& finding : outcome.result()) {
    if (!finding.ok) {
      result.push_back(
          fmt::format("{}: {} ({})", finding.capability, finding.verdict, finding.evidence));
    }
  }
  return result;
}

using Problems = std::vector<std::string>;

}  // namespace

TEST_CASE("preflight of a server that is as planned") {
  const auto outcome = preflight({});
  std::vector<std::string> lines;
  for (const Finding& finding : outcome.result()) {
    CHECK(finding.ok);
    lines.push_back(
        fmt::format("{}: {} ({})", finding.capability, finding.verdict, finding.evidence));
  }
  REQUIRE(lines.size() == 11);
  CHECK(lines[0] == "engine: llama.cpp, build b1 ()");
  CHECK(lines[1] == "model: tiny.gguf, Q4_1, vocabulary 6 (plan: tiny.gguf)");
  CHECK(lines[2] == "context: 2048 tokens per slot (plan: 2048)");
  CHECK(lines[3] == "slots: 1 (plan: 1)");
  CHECK(lines[4] == "KV cache: q8_0, as the command says (the server does not tell)");
  CHECK(lines[5] == "template: the model's own chat template (3 tokens, BOS 1 once)");
  CHECK(lines[6] == "labels: each is one token of its own (3 5)");
  CHECK(lines[7].find("exact read: 2 of 2 labels, ") == 0);
  CHECK(lines[7].find("(2 requests, limit 1e-04 (relative))") != std::string::npos);
  CHECK(lines[8] == "repeats: 5 reads, equal to the bit (one slot)");
  CHECK(lines[9] == "prompt cache: every prompt token computed anew (6 reads of one prompt)");
  CHECK(lines[10] ==
        "error envelope: HTTP 400, invalid_request_error (n_predict must be a number)");
}

TEST_CASE("preflight of a top-k read compares the labels that came") {
  Setting setting;
  setting.spec.read = ReadMode::top_k;
  CHECK(problems({}, setting).empty());
  FakeServer wrong;
  wrong.whole_yes = -3.01;
  CHECK(problems(wrong, setting).size() == 1);
  setting.spec.k = 2;  // one label of two
  CHECK(problems({}, setting).empty());
}

TEST_CASE("preflight names what is not as planned") {
  FakeServer server;
  server.context = 1024;
  CHECK(problems(server) == Problems{"context: 1024 tokens per slot (plan: 2048)"});
  server = {};
  server.slots = 4;
  CHECK(problems(server) == Problems{"slots: 4 (plan: 1)"});
  server = {};
  server.model = "/m/other.gguf";
  CHECK(problems(server) == Problems{"model: other.gguf, Q4_1, vocabulary 6 (plan: tiny.gguf)"});
  server = {};
  server.doubled_bos = true;
  CHECK(
      problems(server) ==
      Problems{"template: prompt_mismatch (the prompt begins with token 1 twice: a doubled BOS)"});
  server = {};
  server.label_tokens_no = "[9,5,6]";
  CHECK(problems(server).at(0).find(
            "labels: label_tokens (record r-1: label \"no\" is not one token") == 0);
  server = {};
  server.accepts_nonsense = true;
  CHECK(problems(server) ==
        Problems{"error envelope: HTTP 200 to a request that makes no sense ()"});
}

TEST_CASE("preflight: reads that cannot be trusted") {
  FakeServer server;
  server.restricted_yes += 0.001;
  server.whole_yes = -3.0;
  CHECK(problems(server).at(0).find("exact read: 2 of 2 labels, 3.7e-03 from") == 0);
  server = {};
  server.drift = 0.25;
  const Problems drifting = problems(server);
  REQUIRE(drifting.size() == 1);
  CHECK(drifting[0].find("repeats: 5 reads, up to 0.25 nats apart (one slot)") == 0);
  // Several slots may: then it is a fact, not a fault.
  Setting several;
  several.spec.slots = server.slots = 2;
  CHECK(problems(server, several).empty());
  // B6.
  server = {};
  server.cached = 2;
  CHECK(problems(server).at(0).find("whole vocabulary: cached_prompt (2 prompt tokens came") == 0);
  server = {};
  server.no_label = true;
  CHECK(
      problems(server) ==
      Problems{"whole vocabulary: missing_label (token 3 is not among the 4 that came, of 1048576 "
               "asked for)"});
}

TEST_CASE("preflight: a server that is away ends it, and one that is something else is a finding") {
  const LlamaCpp backend({}, {}, {});
  const auto with = [&](const HttpReply& reply) {
    return converse_with<std::vector<Finding>>(*backend.preflight({}), {reply});
  };
  CHECK(with(status_reply(503, R"({"error":{"message":"Loading model"}})")).failure().message ==
        "HTTP 503: Loading model");
  const auto other = with(ok_reply("{\"version\":\"1\"}"));
  REQUIRE(other.result().size() == 1);
  CHECK(other.result()[0].capability == "engine");
  CHECK_FALSE(other.result()[0].ok);
}
