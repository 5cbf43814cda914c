// vLLM: who answers, how a prompt becomes tokens, and what the probe finds out about reads by id.
#include "backend/vllm.h"

#include <fmt/format.h>

#include "backend/probe.h"
#include "backend/vllm_replies.h"

using namespace preval;
using namespace preval::test;

namespace {

constexpr const char* kModels =
    R"({"object":"list","data":[{"id":"smollm2-135m","object":"model","created":1796070432,"owned_by":"vllm",)"
    R"("root":"/m/smollm2-135m","parent":null,"max_model_len":2048,"permission":[]}]})";
constexpr const char* kMetrics =
    "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
    "# TYPE vllm:cache_config_info gauge\n"
    "vllm:cache_config_info{block_size=\"128\",cache_dtype=\"auto\",mamba_cache_dtype=\"float32\"} "
    "1.0\n";

Vllm backend(ReadMode mode = ReadMode::exact, int k = 3, Template chat_template = Template::chat) {
  BackendSpec spec;
  spec.kind = "vllm";
  spec.read = mode;
  spec.k = k;
  Checkpoint checkpoint;
  checkpoint.chat_template = chat_template;
  return Vllm(spec, checkpoint, {});
}

Outcome<TokenPrompt> tokenise(const Vllm& server, std::deque<HttpReply> replies,
                              const Prompt& asked = hot_or_not()) {
  Record record;
  record.id = "r-1";
  return converse_with<TokenPrompt>(*server.tokenise({&record, &asked, "none", 0}),
                                    std::move(replies));
}

}  // namespace

TEST_CASE("vllm: identity is version, model, longest prompt and the cache's type") {
  const Vllm server = backend();
  const auto outcome = converse_with<Identity>(
      *server.identify(),
      {ok_reply(R"({"version":"0.32.0"})"), ok_reply(kModels), ok_reply(kMetrics)});
  REQUIRE(outcome.asked.size() == 3);
  CHECK(outcome.asked[0].method == "GET");
  CHECK(outcome.asked[0].path == "/version");
  CHECK(outcome.asked[1].path == "/v1/models");
  CHECK(outcome.asked[2].path == "/metrics");
  CHECK(outcome.result().facts == Json{{"engine", "vllm"},
                                       {"version", "0.32.0"},
                                       {"model", "smollm2-135m"},
                                       {"context", 2048},
                                       {"kv_cache", "auto"}});
  CHECK(server.learned().model == "smollm2-135m");
}

TEST_CASE("vllm: metrics may be off, but not in trouble") {
  const Vllm server = backend();
  const auto last = [&](HttpReply reply) {
    return converse_with<Identity>(*server.identify(), {ok_reply(R"({"version":"0.32.0"})"),
                                                        ok_reply(kModels), std::move(reply)});
  };
  CHECK_FALSE(
      last(status_reply(404, R"({"detail":"Not Found"})")).result().facts.contains("kv_cache"));
  CHECK_FALSE(
      last(ok_reply("vllm:num_requests_running 0.0\n")).result().facts.contains("kv_cache"));
  CHECK(last(status_reply(503, "")).failure().retry);
  CHECK(metric_label(kMetrics, "vllm:cache_config_info", "cache_dtype") == "auto");
  CHECK(metric_label(kMetrics, "vllm:cache_config_info", "mamba_cache_dtype") == "float32");
  CHECK(metric_label(kMetrics, "vllm:cache_config", "cache_dtype").empty());
  CHECK(metric_label("vllm:cache_config_info{cache_dtype=\"fp8", "vllm:cache_config_info",
                     "cache_dtype") == "fp8");
}

TEST_CASE("vllm: the planned model is the one asked for, among several") {
  BackendSpec spec;
  spec.model = "tuned";
  const char* two =
      R"({"data":[{"id":"/m/base","max_model_len":2048},{"id":"tuned","max_model_len":1024}]})";
  const auto facts = [&](const Vllm& server) {
    return converse_with<Identity>(*server.identify(), {ok_reply(R"({"version":"0.32.0"})"),
                                                        ok_reply(two), ok_reply(kMetrics)})
        .result()
        .facts;
  };
  const Vllm planned(spec, {}, {});
  CHECK(facts(planned)["model"] == "tuned");
  CHECK(facts(planned)["context"] == 1024);
  CHECK(planned.learned().model == "tuned");
  // Nobody knows which one is meant where none is named; folders are nobody's business.
  const auto unplanned = converse_with<Identity>(
      *backend().identify(), {ok_reply(R"({"version":"0.32.0"})"), ok_reply(two)});
  CHECK(unplanned.failure().error_class == "several_models");
  CHECK(unplanned.failure().message.find("several models (base, tuned)") != std::string::npos);
  // Two names of one model are no question.
  const Vllm aliased = backend();
  CHECK(converse_with<Identity>(
            *aliased.identify(),
            {ok_reply(R"({"version":"0.32.0"})"),
             ok_reply(R"({"data":[{"id":"small","root":"/m/a"},{"id":"a","root":"/m/a"}]})"),
             ok_reply(kMetrics)})
            .result()
            .facts["model"] == "small");
  // A model that is not served shows by its name.
  spec.model = "absent";
  CHECK(facts(Vllm(spec, {}, {}))["model"] == "base");
}

TEST_CASE("vllm: a server that is something else") {
  const auto failure = [](std::deque<HttpReply> replies) {
    const Vllm server = backend();
    return converse_with<Identity>(*server.identify(), std::move(replies)).failure();
  };
  CHECK(failure({ok_reply("{}")}).message == "/version is not that of a vLLM server");
  CHECK(failure({status_reply(404, R"({"detail":"Not Found"})")}).error_class == "http_error");
  CHECK(failure({ok_reply("[")}).error_class == "invalid_json");
  CHECK(failure({ok_reply(R"({"version":"0.32.0"})"), ok_reply(R"({"data":[]})")}).message ==
        "/v1/models names no model");
}

TEST_CASE("vllm: template → labels, and what was learned is not asked again") {
  const Vllm server = backend();
  const auto first = tokenise(server, {vllm_tokens({1, 9690, 198}), vllm_tokens({43066, 42, 9805}),
                                       vllm_tokens({43066, 42, 787})});
  REQUIRE(first.asked.size() == 3);
  CHECK(first.asked[0].path == "/tokenize");
  CHECK(
      first.asked[0].body ==
      R"({"messages":[{"role":"system","content":"Is it hot?"},{"role":"user","content":"Tea."}],)"
      R"("add_generation_prompt":true,"add_special_tokens":false,)"
      R"("chat_template_kwargs":{"enable_thinking":false}})");
  CHECK(first.asked[1].body == R"({"prompt":"decision: yes","add_special_tokens":false})");
  CHECK(first.result().tokens == std::vector<TokenId>{1, 9690, 198, 43066, 42});
  CHECK(first.result().labels == std::vector<TokenId>{9805, 787});
  server.learned().model = "smollm2-135m";
  const auto second = tokenise(server, {vllm_tokens({1, 4093})});
  CHECK(second.asked[0].body.starts_with(R"({"model":"smollm2-135m","messages":[)"));
  CHECK(second.result().tokens == std::vector<TokenId>{1, 4093, 43066, 42});
}

TEST_CASE("vllm: plain text gets the BOS that the model adds, if any") {
  const Vllm with_bos = backend(ReadMode::exact, 0, Template::none);
  const auto outcome = tokenise(with_bos, {vllm_tokens({30, 31}), vllm_tokens({2, 30, 31}),
                                           vllm_tokens({9, 70}), vllm_tokens({9, 71})});
  CHECK(outcome.asked[0].body ==
        R"({"prompt":"Is it hot?\n\nTea.\n\n","add_special_tokens":false})");
  CHECK(outcome.asked[1].body ==
        R"({"prompt":"Is it hot?\n\nTea.\n\n","add_special_tokens":true})");
  CHECK(outcome.result().tokens == std::vector<TokenId>{2, 30, 31, 9});
  CHECK(tokenise(with_bos, {vllm_tokens({32})}).result().tokens == std::vector<TokenId>{2, 32, 9});
  const Vllm without = backend(ReadMode::exact, 0, Template::none);
  CHECK(tokenise(without, {vllm_tokens({30, 31}), vllm_tokens({30, 31}), vllm_tokens({9, 70}),
                           vllm_tokens({9, 71})})
            .result()
            .tokens == std::vector<TokenId>{30, 31, 9});
  // An end token behind the text is nothing that a prompt could have.
  const Vllm strange = backend(ReadMode::exact, 0, Template::none);
  CHECK(tokenise(strange, {vllm_tokens({30, 31}), vllm_tokens({30, 31, 1})})
            .failure()
            .message.find("adds more to a text than a BOS in front") ==
        4 + std::string("model ").size());
  CHECK(tokenise(strange, {vllm_tokens({30, 31}), vllm_tokens({30})}).failure().error_class ==
        "unexpected_reply");
}

TEST_CASE("C1: vllm: a doubled BOS is refused") {
  const auto failure = tokenise(backend(), {vllm_tokens({2, 2, 105})}).failure();
  CHECK(failure.error_class == "prompt_mismatch");
  CHECK(failure.message == "the prompt begins with token 2 twice: a doubled BOS");
  const Vllm plain = backend(ReadMode::exact, 0, Template::none);
  CHECK(tokenise(plain, {vllm_tokens({2, 2, 105}), vllm_tokens({2, 2, 2, 105})})
            .failure()
            .error_class == "prompt_mismatch");
  // A plain text may begin with two equal tokens.
  const Vllm text = backend(ReadMode::exact, 0, Template::none);
  CHECK(tokenise(text, {vllm_tokens({7, 7}), vllm_tokens({2, 7, 7}), vllm_tokens({9, 70}),
                        vllm_tokens({9, 71})})
            .result()
            .tokens == std::vector<TokenId>{2, 7, 7, 9});
}

TEST_CASE("A13: vllm: labels come from their context, and are one token each") {
  // Behind "Answer:" the label is the token " yes", behind "Answer: " it is "yes": what is sent
  // together is tokenised together.
  Prompt tight = hot_or_not(), loose = hot_or_not();
  tight.lead = "Answer:";
  loose.lead = "Answer: ";
  const Vllm server = backend();
  CHECK(tokenise(server, {vllm_tokens({1}), vllm_tokens({33, 10}), vllm_tokens({33, 11})}, tight)
            .result()
            .labels == std::vector<TokenId>{10, 11});
  CHECK(tokenise(server, {vllm_tokens({1}), vllm_tokens({33, 20}), vllm_tokens({33, 21})}, loose)
            .result()
            .labels == std::vector<TokenId>{20, 21});
  const auto refused =
      tokenise(backend(), {vllm_tokens({1}), vllm_tokens({33, 220, 10}), vllm_tokens({33, 21})});
  CHECK(refused.failure().error_class == "label_tokens");
  CHECK(refused.failure().message.starts_with("record r-1: label \"no\" is not one token"));
  CHECK_FALSE(refused.failure().retry);
}

TEST_CASE("vllm: tokenising: replies that cannot be used") {
  const auto failure = [](std::deque<HttpReply> replies) {
    return tokenise(backend(), std::move(replies)).failure();
  };
  CHECK(failure({ok_reply("{\"count\":0}")}).message == "/tokenize gives no tokens");
  CHECK(failure({ok_reply("{\"tokens\":[1,\"a\"]}")}).message == "\"a\" as a token id");
  CHECK(failure({ok_reply("{\"tokens\":[-1]}")}).error_class == "unexpected_reply");
  CHECK(failure({ok_reply("{\"tokens\":[]}")}).message == "the prompt has no tokens");
  CHECK(failure({ok_reply("{\"tokens\":[1],\"tokens\":[2]}")}).error_class == "duplicate_key");
  CHECK(failure({status_reply(503, "")}).retry);
  CHECK(failure({status_reply(400, R"({"error":{"message":"no template"}})")}).message ==
        "HTTP 400: no template");
}

TEST_CASE("vllm: request bodies") {
  CHECK(vllm_exact_body("m\"1", {{1, 2}, {7, 8}}) ==
        R"({"model":"m\"1","prompt":[1,2],"max_tokens":1,"temperature":0,"logprobs":1,)"
        R"("logprob_token_ids":[7,8],"return_tokens_as_token_ids":true,"return_token_ids":true,)"
        R"("add_special_tokens":false})");
  CHECK(vllm_top_k_body("", {1, 2}, 32, {0.7}) ==
        R"({"prompt":[1,2],"max_tokens":1,"temperature":0.7,"logprobs":32,)"
        R"("return_tokens_as_token_ids":true,"return_token_ids":true,"add_special_tokens":false})");
  CHECK(backend().health().path == "/health");
  CHECK(backend().health().method == "GET");
  CHECK(backend().nonsense().path == "/v1/completions");
}

namespace {

/// A vLLM that does not read by id, in one of two ways, and lists the best up to a limit.
struct WithoutIds {
  bool breaks = false;  ///< a 500, where others ignore the ids

  HttpReply operator()(const HttpRequest& request) const {
    if (request.path == "/version") return ok_reply(R"({"version":"0.19.0"})");
    if (request.path == "/v1/models") return ok_reply(kModels);
    if (request.path == "/metrics") return ok_reply(kMetrics);
    if (request.path == "/health") return ok_reply("");
    const Json body = Json::parse(request.body);
    if (request.path == "/tokenize") {
      if (body.contains("messages")) return vllm_tokens({1, 4});
      return vllm_tokens({9, body["prompt"] == "decision: yes" ? 3 : 5});
    }
    VllmFacts facts;
    facts.echo = body["prompt"].dump();
    if (!body["max_tokens"].is_number()) {
      return status_reply(400,
                          R"({"error":{"message":"not a valid integer","type":"Bad Request"}})");
    }
    const int k = body["logprobs"];
    if (body.contains("logprob_token_ids") && breaks) {
      return status_reply(500, R"({"error":{"message":"list index out of range"}})");
    }
    if (k > 20) {
      return status_reply(
          400, fmt::format(R"({{"error":{{"message":"Requested sample logprobs of {}, which is )"
                           R"(greater than max allowed: 20","type":"BadRequestError"}}}})",
                           k));
    }
    std::vector<std::pair<int, double>> entries;
    for (int id = 0; id < k; ++id) entries.emplace_back(id, -1.0 - 0.1 * id);
    return vllm_listed(entries, 0, facts);
  }
};

Finding by_id_of(const WithoutIds& server, ProbeFor purpose, Capabilities* can) {
  BackendSpec spec;
  spec.id = "gpu";
  spec.kind = "vllm";
  spec.read = ReadMode::exact;
  Record record;
  record.id = "r-1";
  const Prompt asked = hot_or_not();
  const ProbeResult result = probe(spec, {}, {}, {{&record, &asked, "none", 0}}, purpose,
                                   [&](const HttpRequest& request) { return server(request); });
  *can = result.can;
  for (const Finding& finding : result.findings) {
    if (finding.capability == "by id") return finding;
  }
  FAIL("no finding about ids");
  return {};
}

}  // namespace

TEST_CASE("A2, A3: the probe finds out that a server does not read by id") {
  for (const bool breaks : {false, true}) {
    Capabilities can;
    const Finding found = by_id_of({breaks}, ProbeFor::plan, &can);
    CHECK_FALSE(found.ok);
    CHECK(found.verdict == "not supported");
    CHECK(found.evidence.find(breaks ? "list index out of range" : "missing_label") !=
          std::string::npos);
    CHECK_FALSE(can.by_id);
    // Without a plan that is knowledge, not a contradiction.
    CHECK(by_id_of({breaks}, ProbeFor::knowledge, &can).ok);
    CHECK(can.verdict() == "top-k ≤ 20");
  }
}
