// One fixture per error envelope (row D8 of the public failures), and the retry table.
#include "backend/errors.h"

#include "backend/dialogues.h"

using namespace preval;
using test::status_reply;

TEST_CASE("D8: every error envelope gives its words and its type") {
  struct Fixture {
    const char* where;
    const char* body;
    const char* text;
    const char* type;
  };
  const Fixture fixture = GENERATE(values<Fixture>({
      {"llama.cpp",
       R"({"error":{"code":400,"message":"Prompt contains invalid tokens","type":"invalid_request_error"}})",
       "Prompt contains invalid tokens", "invalid_request_error"},
      {"llama.cpp while loading",
       R"({"error":{"message":"Loading model","type":"unavailable_error","code":503}})",
       "Loading model", "unavailable_error"},
      {"vLLM",
       R"({"error":{"message":"The model `m` does not exist.","type":"NotFoundError","param":"model","code":404}})",
       "The model `m` does not exist.", "NotFoundError"},
      {"vLLM without type", R"({"error":{"message":"no","type":null,"param":null,"code":400}})",
       "no", "400"},
      {"vLLM before 0.10.1",
       R"({"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400})",
       "too long", "BadRequestError"},
      {"vLLM without key", R"({"error":"Unauthorized"})", "Unauthorized", ""},
      {"pydantic",
       R"({"detail":[{"loc":["body","prompt",0],"msg":"field required","type":"value_error.missing"},
                                 {"loc":["body","n"],"msg":"not a number","type":"type_error"}]})",
       "body.prompt.0: field required; body.n: not a number", "value_error.missing"},
      {"Jev", R"({"detail":{"error_type":"authentication_error","message":"invalid key"}})",
       "invalid key", "authentication_error"},
      {"FastAPI", R"({"detail":"Not Found"})", "Not Found", ""},
      {"Ollama", R"({"error":"model 'x' not found"})", "model 'x' not found", ""},
      {"SGLang",
       R"({"object":"error","message":"list index out of range","type":"InternalServerError","code":500})",
       "list index out of range", "InternalServerError"},
      {"a proxy",
       "<html>\r\n<head><TITLE>502 Bad Gateway</TITLE></head>\r\n<body><h1>502</h1></body></html>",
       "502 Bad Gateway", ""},
      {"a proxy without title", "<html><body><h1>Service</h1>\n<p>is away</p></body></html>",
       "Service is away", ""},
      {"plain text", "upstream connect error\nor disconnect",
       "upstream connect error or disconnect", ""},
      {"a JSON text", "\"busy\"", "busy", ""},
      {"a JSON number", "42", "42", ""},
      {"an object that says nothing", "{}", "", ""},
      {"nothing", "", "", ""},
      {"white space", " \n", "", ""},
  }));
  INFO(fixture.where);
  const ServerMessage message = server_message(fixture.body);
  CHECK(message.text == fixture.text);
  CHECK(message.type == fixture.type);
}

TEST_CASE("an error body can be nested as deep as it likes, and is words then") {
  const std::size_t deep = 200'000;
  const std::string brackets = std::string(deep, '[') + std::string(deep, ']');
  std::string objects;
  for (std::size_t i = 0; i < deep; ++i) objects += "{\"error\":";
  for (const std::string& body : {brackets, R"({"error":{"message":)" + brackets + "}}", objects,
                                  R"({"detail":[{"loc":)" + brackets + "}]}"}) {
    const ServerMessage said = server_message(body);
    CHECK(said.text.substr(0, 5) == body.substr(0, 5));
    CHECK(said.text.size() <= 300);
  }
  // What cannot be trusted as JSON is still said.
  CHECK(server_message(R"({"error":"a","error":"b"})").text == R"({"error":"a","error":"b"})");
}

TEST_CASE("error words are one short line of valid UTF-8") {
  CHECK(server_message(std::string(5000, 'x')).text.size() == 300);
  CHECK(server_message("broken \xff tail").text == "broken");
  CHECK(server_message("{\"error\":\"a\\nb\\u0000c\"}").text == "a b c");
  // A character is not cut in half at the limit.
  CHECK(server_message("\"" + std::string(299, 'x') + "ü\"").text == std::string(299, 'x'));
}

TEST_CASE("the retry table: what is worth asking again, and what counts against the server") {
  struct Row {
    long status;
    bool retry, server;
  };
  const Row row = GENERATE(values<Row>({{400, false, false},
                                        {401, false, false},
                                        {403, false, false},
                                        {404, false, false},
                                        {408, true, false},
                                        {413, false, false},
                                        {422, false, false},
                                        {425, true, false},
                                        {429, true, false},
                                        {500, true, true},
                                        {501, false, false},
                                        {502, true, true},
                                        {503, true, true},
                                        {504, true, true},
                                        {529, true, true},
                                        {302, false, false},
                                        {204, false, false}}));
  INFO(row.status);
  const auto failure =
      transport_failure(status_reply(row.status, R"({"error":{"message":"why"}})"));
  REQUIRE(failure);
  CHECK(failure->error_class == "http_error");
  CHECK(failure->message == "HTTP " + std::to_string(row.status) + ": why");
  CHECK(failure->http_status == row.status);
  CHECK(failure->retry == row.retry);
  CHECK(failure->server == row.server);
}

TEST_CASE("failures below HTTP keep the transport's words") {
  struct Row {
    TransportStatus status;
    const char* error_class;
    bool retry, server;
  };
  const Row row =
      GENERATE(values<Row>({{TransportStatus::connect_failed, "connect_failed", true, true},
                            {TransportStatus::reset, "reset", true, true},
                            {TransportStatus::timeout, "timeout", true, true},
                            {TransportStatus::partial_body, "partial_body", true, true},
                            {TransportStatus::too_large, "too_large", false, false},
                            {TransportStatus::other, "transport_error", false, true}}));
  HttpReply reply;
  reply.transport = row.status;
  reply.transport_message = "words";
  reply.status = row.status == TransportStatus::partial_body ? 200 : 0;
  reply.body = "{\"half\":";
  const auto failure = transport_failure(reply);
  REQUIRE(failure);
  CHECK(failure->error_class == row.error_class);
  CHECK(failure->message == "words");
  CHECK(failure->retry == row.retry);
  CHECK(failure->server == row.server);
  CHECK(failure->body == reply.body);
}

TEST_CASE("a 200 with a body is no failure, an empty one is") {
  CHECK_FALSE(transport_failure(status_reply(200, "x")));
  const auto failure = transport_failure(status_reply(200, ""));
  REQUIRE(failure);
  CHECK(failure->error_class == "unexpected_reply");
  CHECK_FALSE(failure->retry);
  CHECK(to_text(TransportStatus::ok) == "ok");
}

TEST_CASE("a prompt that is too long and a NaN have classes of their own") {
  const auto llama = transport_failure(status_reply(
      400,
      R"({"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (2048 tokens), )"
      R"(try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":2048}})"));
  CHECK(llama->error_class == "context_exceeded");
  CHECK_FALSE(llama->retry);
  const auto vllm = transport_failure(status_reply(
      400,
      R"({"error":{"message":"This model's maximum context length is 2048 tokens. However, your prompt contains )"
      R"(3000 input tokens","type":"BadRequestError","code":400}})"));
  CHECK(vllm->error_class == "context_exceeded");
  const auto nan = transport_failure(status_reply(
      500,
      R"({"error":{"message":"Out of range float values are not JSON compliant","type":"InternalServerError"}})"));
  CHECK(nan->error_class == "server_nan");
  CHECK_FALSE(nan->retry);
  CHECK(nan->server);
}

TEST_CASE("a redirect is final and names where it would have led to") {
  for (const auto& [location, host] :
       {std::pair{"https://user:pw@login.example:8443/x?next=1", "login.example:8443"},
        {"http://example.org", "example.org"},
        {"//cdn.example/x", "cdn.example"},
        {"/login", "another path"}}) {
    HttpReply reply;
    reply.status = 307;
    reply.location = location;
    const auto failure = transport_failure(reply);
    REQUIRE(failure.has_value());
    CHECK(failure->error_class == "http_error");
    CHECK(failure->message ==
          std::string("HTTP 307: redirected to ") + host + ", which is not followed");
    CHECK_FALSE(failure->retry);
    CHECK_FALSE(failure->server);
  }
}
