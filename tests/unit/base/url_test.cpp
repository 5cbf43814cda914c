#include "base/url.h"

#include "catch.h"

using namespace preval;

TEST_CASE("addresses of servers") {
  for (const char* url : {"http://127.0.0.1:8000", "https://api.example.org", "http://h/",
                          "https://example.org/v1", "http://[::1]:8080", "http://h:65535/a/b/"}) {
    INFO(url);
    CHECK(url_problem(url).empty());
  }
  struct Row {
    const char *url, *problem;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"", "must begin with http:// or https://"},
           {"127.0.0.1:8000", "must begin with http:// or https://"},
           {"ftp://h", "must begin with http:// or https://"},
           {"http://", "is no address: "},
           {"http://h:99999", "is no address: "},
           {"http://h:port", "is no address: "},
           {"http://h h", "is no address: "},
           {"http://u:p@h", "holds a user name or password"},
           {"http://u@h", "holds a user name or password"},
           {"http://h?key=secret", "holds a query"},
           {"http://h/#top", "holds a fragment"},
       }) {
    INFO(row.url);
    CHECK(url_problem(row.url).rfind(row.problem, 0) == 0);
    CHECK(std::string(row.problem).size() > 0);
  }
  CHECK(url_path("http://h") == "/");
  CHECK(url_path("http://h/v1") == "/v1");
}
