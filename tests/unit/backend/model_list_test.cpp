// What servers tell of themselves, where they do.
#include "backend/model_list.h"

#include "backend/dialogues.h"

using namespace preval;
using namespace preval::test;

TEST_CASE("an address that a server does not have is an answer") {
  const auto nothing = [](const HttpReply& reply) {
    const auto json = optional_json_of(reply);
    const auto* told = std::get_if<std::optional<Json>>(&json);
    return told != nullptr && !*told;
  };
  CHECK(nothing(status_reply(404, R"({"error":{"message":"File Not Found"}})")));
  CHECK(nothing(status_reply(405, "")));
  CHECK(nothing(status_reply(501, "")));
  CHECK(nothing(ok_reply("<html>welcome</html>")));
  const auto failed = [](const HttpReply& reply) {
    return std::get<Failure>(optional_json_of(reply)).http_status;
  };
  CHECK(failed(status_reply(401, R"({"error":"Unauthorized"})")) == 401);
  CHECK(failed(status_reply(503, "")) == 503);
  HttpReply reset;
  reset.transport = TransportStatus::reset;
  CHECK(failed(reset) == 0);
}

TEST_CASE("models as servers list them") {
  const auto models = listed_models(Json::parse(
      R"({"object":"list","data":[{"id":"a","owned_by":"vllm","max_model_len":2048},{"id":"b"},)"
      R"({"id":7},{"name":"c"},5,{"id":"d","owned_by":1,"max_model_len":"long"}]})"));
  REQUIRE(models.size() == 3);
  CHECK(models[0].id == "a");
  CHECK(models[0].owner == "vllm");
  CHECK(models[0].context == 2048);
  CHECK(models[1].id == "b");
  CHECK(models[1].owner.empty());
  CHECK_FALSE(models[2].context);
  CHECK(listed_models(Json::parse("[]")).empty());
  CHECK(listed_models(Json::parse(R"({"data":{"id":"a"}})")).empty());
}

TEST_CASE("an address is a root, or ends in /v1") {
  CHECK(api_path("https://api.example.org", "/v1/models") == "/v1/models");
  CHECK(api_path("https://api.example.org/v1", "/v1/models") == "/models");
  CHECK(api_path("https://api.example.org/v1/", "/v1/models") == "/models");
  CHECK(api_path("https://api.example.org/api/v1", "/v1/chat/completions") == "/chat/completions");
  CHECK(api_path("", "/v1/models") == "/v1/models");
  CHECK(api_path("http://v1", "/v1/models") == "/v1/models");
}
