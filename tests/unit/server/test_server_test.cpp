// The scriptable server itself, as far as other tests lean on it.
#include <set>

#include "backend/transport.h"
#include "catch.h"
#include "server/protocols.h"
#include "server/scan.h"

using namespace preval;
using namespace preval::test_server;

namespace {

HttpReply ask(const TestServer& server, const std::string& path, const std::string& body) {
  const auto transport = make_curl_transport();
  Endpoint endpoint;
  endpoint.base_url = server.url();
  endpoint.timeouts = {2, 2, 2};
  return exchange(*transport, endpoint, {body.empty() ? "GET" : "POST", path, body});
}

std::string problem_of(const test_server::Json& script) {
  try {
    parse_script(script);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the little model: every label is one token of its own, and always among the best") {
  Tokenizer tokenizer;
  CHECK(tokenizer.tokens_of("decision: A").size() == 3);
  CHECK(tokenizer.tokens_of("decision:").size() == 2);
  CHECK(tokenizer.tokens_of("<|im_start|>user\nwords, more").size() == 6);
  std::set<Id> ids;
  for (int label = 1; label <= Tokenizer::label_count(); ++label) {
    for (const bool spaced : {false, true}) {
      const Id id = tokenizer.label_token(label, spaced);
      ids.insert(id);
      CHECK(tokenizer.label_of(id) == label);
      CHECK(tokenizer.tokens_of(tokenizer.text_of(id)) == std::vector<Id>{id});
    }
  }
  CHECK(ids.size() == 2 * static_cast<std::size_t>(Tokenizer::label_count()));

  const Continuation next(tokenizer, tokenizer.tokens_of("Choose A, B or C.\ndecision:"));
  std::vector<Entry> best;
  next.best(5, best);
  const std::set<Id> first{best[0].first, best[1].first, best[2].first};
  std::set<Id> labels;
  for (const char* text : {" A", " B", " C"}) labels.insert(tokenizer.tokens_of(text).front());
  CHECK(first == labels);
  CHECK(best[2].second > best[3].second);
  CHECK(next.logprob(best[4].first) == best[4].second);
  std::vector<Entry> all;
  next.best(kVocabulary, all);
  double mass = 0;
  for (const auto& [id, logprob] : all) mass += std::exp(logprob);
  CHECK(mass == Approx(1).margin(1e-4));
}

TEST_CASE("rules count the requests that they match") {
  TestServer server(
      {{"kind", "llamacpp"},
       {"rules",
        {{{"path", "/health"}, {"nth", {2}}, {"do", {{"status", 418}, {"body", "tea"}}}},
         {{"path", "/props"}, {"from", 2}, {"to", 3}, {"do", {{"envelope", "busy"}}}},
         {{"containing", "special"}, {"every", 2}, {"do", {{"body", {{"x", 1}}}}}}}}});
  CHECK(ask(server, "/health", "").status == 200);
  CHECK(ask(server, "/health", "").body == "tea");
  CHECK(ask(server, "/health", "").status == 200);
  std::vector<long> statuses;
  for (int i = 0; i < 4; ++i) statuses.push_back(ask(server, "/props", "").status);
  CHECK(statuses == std::vector<long>{200, 429, 429, 200});
  CHECK(ask(server, "/tokenize", R"({"content":"special"})").body == R"({"x":1})");
  CHECK(ask(server, "/tokenize", R"({"content":"special"})").body != R"({"x":1})");
}

TEST_CASE("numbers are spoilt as asked") {
  const auto top = [](const char* how) {
    TestServer server({{"kind", "vllm"}, {"rules", {{{"do", {{"spoil", how}}}}}}});
    return ask(server, "/v1/completions",
               R"({"prompt":[5,6],"max_tokens":1,"logprobs":1,"logprob_token_ids":[7,8]})")
        .body;
  };
  CHECK(top("sentinel").find(R"("top_logprobs":[{"token_id:0":-9999}])") != std::string::npos);
  CHECK(top("lowest_float").find(R"("token_id:7":-3.4028234663852886e+38)") != std::string::npos);
  CHECK(top("nan").find(":NaN}") != std::string::npos);
  CHECK(top("null_logprobs").find(R"("logprobs":null)") != std::string::npos);
  CHECK(top("empty_logprobs").find(R"("top_logprobs":[])") != std::string::npos);
  CHECK(top("no_logprobs").find("\"logprobs\"") == std::string::npos);
  CHECK(top("longer_echo").find(R"("prompt_token_ids":[1,5,6])") != std::string::npos);
  CHECK(top("wrong_ids").find(R"([{"token_id:358":-0.1}])") != std::string::npos);
  CHECK(top("text_keys").find("token_id:7") == std::string::npos);
  const std::string twice = top("duplicate_key");
  CHECK(twice.find("token_id:0\"") != twice.rfind("token_id:0\":"));
}

TEST_CASE("slow and broken answers") {
  TestServer server(
      {{"kind", "vllm"},
       {"rules",
        {{{"path", "/version"}, {"nth", {1}}, {"do", {{"delay_s", 0.2}}}},
         {{"path", "/version"}, {"nth", {2}}, {"do", {{"end", "partial"}}}},
         {{"path", "/version"},
          {"nth", {3}},
          {"do", {{"raw", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"}}}},
         {{"path", "/version"}, {"do", {{"gzip", true}, {"chunked", true}, {"version", "9"}}}}}}});
  CHECK(ask(server, "/version", "").total_ms >= 190);
  CHECK(ask(server, "/version", "").transport == TransportStatus::partial_body);
  CHECK(ask(server, "/version", "").body == "hi");
  CHECK(ask(server, "/version", "").body == R"({"version":"9"})");
}

TEST_CASE("a key is asked for where the script has one, and can be thrown back") {
  TestServer server(
      {{"kind", "vllm"},
       {"key", "sk-12345678"},
       {"rules", {{{"path", "/version"}, {"do", {{"status", 400}, {"body", "no {key}"}}}}}}});
  CHECK(ask(server, "/v1/models", "").status == 401);
  const auto transport = make_curl_transport();
  Endpoint endpoint;
  endpoint.base_url = server.url();
  endpoint.bearer_key = "sk-12345678";
  CHECK(exchange(*transport, endpoint, {"GET", "/v1/models", ""}).status == 200);
  // The transport takes it out again.
  CHECK(exchange(*transport, endpoint, {"GET", "/version", ""}).body == "no [key removed]");
}

TEST_CASE("scripts with mistakes are refused") {
  CHECK(problem_of({{"kinds", "vllm"}}) == "script has no field kinds");
  CHECK(problem_of({{"rules", {{{"do", {{"end", "badly"}}}}}}}).find("no ending \"badly\"") !=
        std::string::npos);
  CHECK(problem_of({{"rules", {{{"do", {{"spoil", "fun"}}}}}}}).find("nothing known as fun") !=
        std::string::npos);
  CHECK(problem_of({{"rules", {{{"do", {{"envelope", "brown"}}}}}}}) == "no envelope brown");
  CHECK(problem_of({{"rules", {{{"every", 0}}}}}).find("at least 1") != std::string::npos);
  CHECK(problem_of({{"port", "x"}}).find("script.port") == 0);
}
