// The probe against a small model of llama.cpp's server, which can be made to misbehave in one way
// at a time.
#include "backend/probe.h"

#include <cmath>

#include "backend/llamacpp_replies.h"

using namespace preval;
using namespace preval::test;

namespace {

/// Forty tokens of vocabulary with fixed values; labels "yes" and "no" are tokens 3 and 5.
struct FakeServer {
  int context = 2048, slots = 1, cached = 0;
  std::string model = "/m/tiny.gguf";
  double drift = 0;       ///< added to token 3 at every read behind the first
  double warmth = 0;      ///< added to token 3 from the second read on, once and for all
  double whole_yes = 0;   ///< added to token 3 in a read of the whole vocabulary
  double restricted = 0;  ///< added to the probability of token 3 in a restricted read
  double sampler = 0;     ///< added to token 3 at another temperature
  bool doubled_bos = false, accepts_nonsense = false, no_label = false, thinks = false;
  bool unauthorised = false;
  long trouble = 0;  ///< the status of every read, when not 0
  bool healthy = true;
  std::string label_tokens_no = "[9,5]";
  int reads = 0;
  std::vector<HttpRequest>* asked = nullptr;  ///< where to keep what was asked

  HttpReply operator()(const HttpRequest& request) {
    if (asked != nullptr) asked->push_back(request);
    if (unauthorised) return status_reply(401, R"({"error":"Unauthorized"})");
    if (request.path == "/props") {
      return ok_reply(fmt::format(
          R"({{"default_generation_settings":{{"n_ctx":{}}},"total_slots":{},"model_path":"{}",)"
          R"("model_ftype":"Q4_1","build_info":"b1","chat_template":"t"}})",
          context, slots, model));
    }
    if (request.path == "/v1/models") {
      return ok_reply(fmt::format(R"({{"data":[{{"id":"{}","meta":{{"n_vocab":40}}}}]}})", model));
    }
    if (request.path == "/health") {
      return healthy ? ok_reply(R"({"status":"ok"})") : status_reply(503, "{}");
    }
    const Json body = Json::parse(request.body);
    if (request.path == "/apply-template") {
      const bool on = body["chat_template_kwargs"]["enable_thinking"] == true;
      return ok_reply(on && thinks ? R"({"prompt":"<s>think"})" : R"({"prompt":"<s>hot?"})");
    }
    if (request.path == "/tokenize") return tokenise(body["content"]);
    if (!body["n_predict"].is_number()) {
      return accepts_nonsense
                 ? ok_reply("{}")
                 : status_reply(
                       400,
                       R"({"error":{"message":"n_predict must be a number","type":"invalid_request_error"}})");
    }
    if (trouble != 0) return status_reply(trouble, R"({"error":{"message":"not now"}})");
    return complete(body);
  }

 private:
  HttpReply tokenise(const std::string& text) const {
    if (text.empty()) return tokens_reply({1});
    if (text == "decision: yes") return tokens_reply({9, 3});
    if (text == "decision: no") return ok_reply("{\"tokens\":" + label_tokens_no + "}");
    if (text == "<s>think") return tokens_reply({1, 4, 6});
    return doubled_bos ? tokens_reply({1, 1, 4}) : tokens_reply({1, 4});
  }

  /// Values fall by a tenth of a nat; the labels stand among the first.
  double logprob(int id, bool whole, bool hot) const {
    if (id != 3) return id == 0 ? -0.5 : -3.2 - 0.1 * id;
    return -3.0 + (reads > 1 ? warmth : 0) + drift * (reads - 1) + (whole ? whole_yes : 0) +
           (hot ? sampler : 0);
  }

  HttpReply complete(const Json& body) {
    const CompletionFacts facts{static_cast<int>(body["prompt"].size()), cached, false, model};
    const bool hot = body["temperature"] == 0.7;
    if (body["post_sampling_probs"] == true) {
      Entries chosen;
      double sum = 0;
      for (const Json& bias : body["logit_bias"]) {
        const int id = bias[0].get<int>();
        chosen.emplace_back(id, std::exp(logprob(id, false, hot)));
        sum += chosen.back().second;
      }
      for (auto& [id, p] : chosen) p = p / sum + (id == 3 ? restricted : 0);
      return restricted_reply(chosen, facts);
    }
    ++reads;
    const auto count = body["n_probs"].get<std::size_t>();
    Entries all;
    for (int id = 0; id < 40; ++id) {
      if (no_label && (id == 3 || id == 5)) continue;
      all.emplace_back(id, logprob(id, count >= 40, hot));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    all.resize(std::min(count, all.size()));
    return raw_reply(all, facts);
  }
};

struct Setting {
  BackendSpec spec;
  Checkpoint checkpoint;
  PromptSpec prompt;
  ProbeFor purpose = ProbeFor::plan;
  Setting() {
    spec.id = "exact";
    spec.kind = "llamacpp";
    spec.server = ServerCommand{};
    spec.kv_cache = "q8_0";
    spec.raw_probs = 3;
    checkpoint.files = {{"tiny.gguf", "", 0}};
  }
};

ProbeResult probed(FakeServer server, const Setting& setting = {}) {
  Record record;
  record.id = "r-1";
  Prompt prompt;
  prompt.system = "Hot?";
  prompt.lead = "decision: ";
  prompt.labels = {"yes", "no"};
  return probe(setting.spec, setting.checkpoint, setting.prompt, {{&record, &prompt, "none", 0}},
               setting.purpose, [&](const HttpRequest& request) { return server(request); });
}

std::string line(const Finding& finding) {
  return fmt::format("{}: {} ({})", finding.capability, finding.verdict, finding.evidence);
}

using Problems = std::vector<std::string>;

/// Those that are not well.
Problems problems(FakeServer server, const Setting& setting = {}) {
  Problems result;
  for (const Finding& finding : probed(std::move(server), setting).findings) {
    if (!finding.ok) result.push_back(line(finding));
  }
  return result;
}

}  // namespace

TEST_CASE("a server that is as planned") {
  const ProbeResult found = probed({});
  Problems lines;
  for (const Finding& finding : found.findings) {
    INFO(line(finding));
    CHECK(finding.ok);
    lines.push_back(line(finding));
  }
  CHECK(found.can.verdict() == "exact, top-k");
  CHECK(
      lines ==
      Problems{"engine: llama.cpp b1 ()", "model: tiny.gguf (plan: tiny.gguf)",
               "context: 2048 tokens (plan: 2048)", "slots: 1 at once (plan: 1)",
               "KV cache: not told by the server (plan: q8_0)",
               "template: the model's own chat template (3 tokens, 1 4 9 …, no token twice at the "
               "start)",
               "reasoning switch: makes no difference (the template's enable_thinking, on and "
               "off)",
               "labels: each one token of its own, one set (yes no: 3 5)",
               "exact read: 2 of 2 labels (2 request(s))",
               "cold and warm: equal to the bit (first and second read of one prompt)",
               "repeats: equal to the bit (5 reads)", "top-k: no limit met (asked for 1048576)",
               "by id: every token that was asked for (32 ids, most of them unlikely)", lines[13],
               "raw values: the model's own (temperature 0 and 0.7: 0 nats apart)",
               "error envelope: HTTP 400, invalid_request_error (n_predict must be a number)"});
  CHECK(lines[13].find("exact and top-k: ") == 0);
  CHECK(lines[13].find("(relative, over 2 labels; limit 1e-04)") != std::string::npos);
}

TEST_CASE("what is not as planned is named") {
  FakeServer server;
  server.context = 1024;
  CHECK(problems(server) == Problems{"context: 1024 tokens (plan: 2048)"});
  server = {};
  server.slots = 4;
  CHECK(problems(server) == Problems{"slots: 4 at once (plan: 1)"});
  server = {};
  server.model = "/m/other.gguf";
  CHECK(problems(server) == Problems{"model: other.gguf (plan: tiny.gguf)"});
  server = {};
  server.accepts_nonsense = true;
  CHECK(problems(server).empty());  // lenient, and read as the plan says all the same
  Setting anyone;
  anyone.purpose = ProbeFor::knowledge;
  CHECK(problems(server, anyone) ==
        Problems{"error envelope: HTTP 200 to a request that makes no sense ()"});
  server = {};
  server.label_tokens_no = "[9,5,6]";
  CHECK(problems(server).at(0).find(
            "labels: label_tokens (record r-1: label \"no\" is not one token") == 0);
  Setting reasoning;
  reasoning.prompt.reasoning = true;
  CHECK(problems({}, reasoning).at(0).find("reasoning switch: makes no difference") == 0);
  server = {};
  server.thinks = true;
  CHECK(problems(server, reasoning).empty());
  // Without a plan all this is knowledge.
  Setting curious;
  curious.purpose = ProbeFor::knowledge;
  server = {};
  server.context = 1024;
  server.slots = 4;
  server.model = "/m/other.gguf";
  CHECK(problems(server, curious).empty());
}

TEST_CASE("C1: a doubled BOS spoils every read, planned or not") {
  Setting setting;
  for (const ProbeFor purpose : {ProbeFor::plan, ProbeFor::knowledge}) {
    setting.purpose = purpose;
    FakeServer server;
    server.doubled_bos = true;
    CHECK(problems(server, setting) ==
          Problems{
              "template: prompt_mismatch (the prompt begins with token 1 twice: a doubled BOS)"});
  }
}

TEST_CASE("reads that cannot be trusted") {
  FakeServer server;
  server.whole_yes = -0.01;
  CHECK(problems(server).at(0).find("exact and top-k: ") == 0);
  server = {};
  server.drift = 0.25;
  CHECK(problems(server).at(0).find("cold and warm: up to 0.25 apart") == 0);
  CHECK(problems(server).at(1).find("repeats: up to 0.75 apart (5 reads)") == 0);
  server = {};
  server.sampler = 0.5;
  CHECK(problems(server).at(0).find(
            "raw values: changed by the sampler (temperature 0 and 0.7: 0.5 nats apart)") == 0);
  // Several slots may drift: then it is a fact, not a fault.
  Setting several;
  several.spec.slots = server.slots = 2;
  server.sampler = 0;
  server.warmth = 0.2;
  CHECK(problems(server, several).empty());
}

TEST_CASE("B6: a prompt that came from the server's cache is no read") {
  FakeServer server;
  server.cached = 2;
  CHECK(problems(server).at(0).find("exact read: cached_prompt (2 prompt tokens came") == 0);
}

TEST_CASE("B6: no read lets the server take a prompt from its cache") {
  std::vector<HttpRequest> asked;
  FakeServer server;
  server.asked = &asked;
  probed(server);
  std::size_t reads = 0;
  for (const HttpRequest& request : asked) {
    if (request.path != "/completion") continue;
    const Json body = Json::parse(request.body);
    if (!body["n_predict"].is_number()) continue;  // asked to see an error
    ++reads;
    INFO(request.body);
    CHECK(body.value("cache_prompt", true) == false);
  }
  CHECK(reads > 5);
}

TEST_CASE("a plan that asks for what the server cannot do") {
  FakeServer server;
  server.no_label = true;
  const ProbeResult found = probed(server);
  CHECK_FALSE(found.can.by_id);
  CHECK(problems(server).at(0).find("exact read: missing_label (token 3 is not among") == 0);
  CHECK(problems(server).back().find("by id: not supported (missing_label") == 0);
}

TEST_CASE("a server that is away ends the probe, and one that is something else is a finding") {
  FakeServer locked;
  locked.unauthorised = true;
  const ProbeResult refused = probed(locked);
  REQUIRE(refused.broke);
  CHECK(refused.broke->message == "HTTP 401: Unauthorized");
  CHECK(refused.findings.empty());

  const auto with = [](const HttpReply& reply) {
    return probe(Setting().spec, {}, {}, {}, ProbeFor::plan,
                 [&](const HttpRequest&) { return reply; });
  };
  HttpReply away;
  away.transport = TransportStatus::connect_failed;
  CHECK(with(away).broke->error_class == "connect_failed");
  const ProbeResult other = with(ok_reply("{\"version\":\"1\"}"));
  CHECK_FALSE(other.broke);
  REQUIRE_FALSE(other.findings.empty());
  CHECK(other.findings[0].capability == "engine");
  CHECK_FALSE(other.findings[0].ok);
  CHECK(other.can.verdict() == "nothing that can be read");
}

TEST_CASE("an outage is no word on what a server can do") {
  FakeServer server;
  server.trouble = GENERATE(408, 429, 502, 503, 504);
  const ProbeResult found = probed(server);
  REQUIRE(found.broke);
  CHECK(found.broke->http_status == server.trouble);
  for (const Finding& finding : found.findings) CHECK(finding.ok);
}

TEST_CASE("a 500 is an outage where the server's health is gone, else its answer") {
  FakeServer server;
  server.trouble = 500;
  CHECK_FALSE(probed(server).broke);
  CHECK(problems(server).at(0) == "exact read: http_error (HTTP 500: not now)");
  server.healthy = false;
  REQUIRE(probed(server).broke);
  CHECK(probed(server).broke->http_status == 500);
  CHECK(problems(server).empty());
}

namespace {

/// A chat server that gives so many log-probabilities at most, and refuses more in these words.
ProbeResult probed_chat(int most, int k, const std::string& words, long status = 400,
                        ProbeFor purpose = ProbeFor::plan) {
  BackendSpec spec;
  spec.id = "chat";
  spec.kind = "openai-chat";
  spec.read = ReadMode::text_top_k;
  spec.k = k;
  spec.url = "http://127.0.0.1:1";
  spec.model = "tiny";
  Record record;
  record.id = "r-1";
  Prompt prompt;
  prompt.labels = {"yes", "no"};
  return probe(
      spec, {}, {}, {{&record, &prompt, "none", 0}}, purpose, [&](const HttpRequest& request) {
        if (request.method == "GET") return ok_reply(R"({"data":[{"id":"tiny"}]})");
        const Json body = Json::parse(request.body);
        if (!body["messages"].is_array()) return status_reply(400, R"({"error":"no"})");
        const int asked = body["top_logprobs"].get<int>();
        if (asked > most) return status_reply(status, Json{{"error", words}}.dump());
        Json list = Json::array();
        for (int i = 0; i < asked; ++i) {
          const std::string token = i == 0 ? "yes" : i == 1 ? "no" : fmt::format("t{}", i);
          list.push_back({{"token", token}, {"logprob", -0.5 - i}});
        }
        const Json position = {{"token", "yes"}, {"logprob", -0.5}, {"top_logprobs", list}};
        return ok_reply(
            Json{{"model", "tiny-2"},
                 {"choices", Json::array({{{"logprobs", {{"content", Json::array({position})}}}}})}}
                .dump());
      });
}

}  // namespace

TEST_CASE("a limit is what a refusal says and a read confirms, and takes nothing back") {
  struct Row {
    int most, k;
    const char* words;
    long status;
    const char* verdict;
  };
  for (const Row& row : std::initializer_list<Row>{
           {20, 5, "top_logprobs must be at most 20", 400, "text only ≤ 20"},
           {5, 5, "too many log-probabilities", 400, "text only"},
           {5, 5, "1 or 2 problems with request 4", 400, "text only"},
           {5, 5, "at most 7, please", 422, "text only"},
           {5, 5, "worker 3 died", 500, "text only"},
           {20, 20, "0", 400, "text only"},
       }) {
    INFO(row.words);
    const ProbeResult found = probed_chat(row.most, row.k, row.words, row.status);
    CHECK(found.can.verdict() == row.verdict);
    for (const Finding& finding : found.findings) {
      INFO(line(finding));
      CHECK(finding.ok);
    }
    CHECK(found.answered_by == "tiny-2");
  }
}

TEST_CASE("a plan that asks for more than a server gives") {
  const ProbeResult found = probed_chat(5, 20, "top_logprobs must be at most 5");
  CHECK(found.can.verdict() == "text only ≤ 5");
  Problems problems;
  for (const Finding& finding : found.findings) {
    if (!finding.ok) problems.push_back(finding.capability + ": " + finding.verdict);
  }
  CHECK(problems == Problems{"text-top-k read: http_error",
                             "text-top-k: 20 asked for by the plan, 5 are the most"});
  // Nothing can be had at all.
  const ProbeResult nothing = probed_chat(0, 5, "log-probabilities are not given");
  CHECK_FALSE(nothing.can.anything());
  CHECK(nothing.findings.back().ok);  // the refusal of nonsense
}

TEST_CASE("limits are read from refusals") {
  CHECK(limit_in("Requested sample logprobs of 33, which is greater than max allowed: 32", 33) ==
        32);
  CHECK(
      limit_in("Requested logprob_token_ids of length 129, which is greater than max allowed: 128",
               129) == 128);
  CHECK(limit_in("top_logprobs must be between 0 and 20", 1000) == 20);
  CHECK(limit_in("expected a value <= 20, but got 1000 instead.", 1000) == 20);
  CHECK_FALSE(limit_in("no", 1000));
  CHECK_FALSE(limit_in("1000", 1000));
  CHECK_FALSE(limit_in("99999999999999999999", 1000));
}

TEST_CASE("verdicts are short") {
  Capabilities can;
  CHECK(can.verdict() == "nothing that can be read");
  can.text = true;
  can.most_text = 20;
  CHECK(can.verdict() == "text only ≤ 20");
  can.by_id = can.top_k = true;
  can.most_ids = 128;
  can.most_k = 32;
  CHECK(can.verdict() == "exact ≤ 128, top-k ≤ 32, text ≤ 20");
  can = {};
  can.native = true;
  CHECK(can.verdict() == "native");
}
