#include "backend/transport.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "backend/backend.h"
#include "backend/socket_server.h"
#include "base/error.h"
#include "catch.h"
#include "run/server.h"

using namespace preval;
using namespace preval::test;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

Endpoint to(const SocketServer& server, Timeouts timeouts = {2, 2, 3}) {
  Endpoint endpoint;
  endpoint.base_url = server.url();
  endpoint.timeouts = timeouts;
  return endpoint;
}

HttpReply ask(const SocketServer& server, Timeouts timeouts = {2, 2, 3}) {
  const auto transport = make_curl_transport();
  return exchange(*transport, to(server, timeouts), {"POST", "/completion", "{}"});
}

}  // namespace

TEST_CASE("a request goes out as it is, and the reply comes back as it is") {
  std::string seen;
  SocketServer server([&](Connection& connection, int) {
    seen = connection.next_request();
    connection.send(http("{\"a\":1}", "201 Created"));
  });
  const auto transport = make_curl_transport();
  Endpoint endpoint = to(server);
  endpoint.bearer_key = "k-123";
  const HttpReply reply = exchange(*transport, endpoint, {"POST", "/x/y", "{\"q\":\"ü\"}"});
  CHECK(reply.transport == TransportStatus::ok);
  CHECK(reply.status == 201);
  CHECK(reply.body == "{\"a\":1}");
  CHECK(reply.content_type == "application/json");
  CHECK(reply.total_ms > 0);
  CHECK(reply.total_ms < 2000);
  CHECK(seen.find("POST /x/y HTTP/1.1\r\n") == 0);
  CHECK(seen.find("\r\nAuthorization: Bearer k-123\r\n") != std::string::npos);
  CHECK(seen.find("\r\nContent-Type: application/json\r\n") != std::string::npos);
  CHECK(seen.find("Expect") == std::string::npos);
  CHECK(seen.substr(seen.size() - 10) == "{\"q\":\"ü\"}");
}

TEST_CASE("GET requests have no body, and no key where none is given") {
  std::string seen;
  SocketServer server([&](Connection& connection, int) {
    seen = connection.next_request();
    connection.send(http("ok"));
  });
  const auto transport = make_curl_transport();
  CHECK(exchange(*transport, to(server), {"GET", "/health", ""}).body == "ok");
  CHECK(seen.find("GET /health HTTP/1.1\r\n") == 0);
  CHECK(seen.find("Authorization") == std::string::npos);
}

TEST_CASE("one connection serves many requests, and one handle many methods") {
  SocketServer server(always(http("{}")));
  const auto transport = make_curl_transport();
  for (int i = 0; i < 5; ++i) {
    CHECK(exchange(*transport, to(server), {"POST", "/p", "{}"}).status == 200);
    CHECK(exchange(*transport, to(server), {"GET", "/g", ""}).status == 200);
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("callbacks run inside wait(), and may start the next request") {
  SocketServer server(always(http("{}")));
  const auto transport = make_curl_transport();
  int started = 0, done = 0;
  std::function<void()> next = [&] {
    ++started;
    transport->start(to(server), {"POST", "/p", "{}"}, [&](HttpReply reply) {
      CHECK(reply.status == 200);
      ++done;
      if (started < 40) next();
    });
  };
  for (int i = 0; i < 8; ++i) next();
  CHECK(transport->in_flight() == 8);
  CHECK(done == 0);
  while (transport->in_flight() > 0) transport->wait(milliseconds(1000));
  CHECK(done == 40);
  CHECK(server.connections() <= 8);
}

TEST_CASE("a callback that throws loses no other reply") {
  SocketServer server(always(http("{}")));
  const auto transport = make_curl_transport();
  int done = 0;
  for (int i = 0; i < 4; ++i) {
    transport->start(to(server), {"POST", "/p", "{}"}, [&done](HttpReply) {
      if (++done == 1) throw std::runtime_error("disk full");
    });
  }
  bool thrown = false;
  while (transport->in_flight() > 0) {
    try {
      transport->wait(milliseconds(1000));
    } catch (const std::runtime_error&) {
      thrown = true;
    }
  }
  CHECK(thrown);
  CHECK(done == 4);
}

TEST_CASE("wait() ends when the time is over, and requests in flight end with the transport") {
  SocketServer server([](Connection& connection, int) { connection.hang(); });
  bool called = false;
  {
    const auto transport = make_curl_transport();
    const auto start = steady_clock::now();
    transport->wait(milliseconds(30));
    transport->start(to(server), {"POST", "/p", "{}"}, [&](HttpReply) { called = true; });
    transport->wait(milliseconds(30));
    CHECK(steady_clock::now() - start >= milliseconds(60));
    CHECK(transport->in_flight() == 1);
  }
  CHECK_FALSE(called);
}

TEST_CASE("D5: a server that accepts and never answers") {
  SocketServer server([](Connection& connection, int) { connection.hang(); });
  const auto start = steady_clock::now();
  const HttpReply reply = ask(server, {2, 0.2, 5});
  CHECK(reply.transport == TransportStatus::timeout);
  CHECK(reply.transport_message == "no answer within 0.2 s");
  CHECK(steady_clock::now() - start < milliseconds(4000));
  CHECK(transport_failure(reply)->error_class == "timeout");
  CHECK(transport_failure(reply)->retry);
}

TEST_CASE("D5: headers and half a body, then silence") {
  SocketServer server([](Connection& connection, int) {
    connection.next_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
    connection.hang();
  });
  const HttpReply reply = ask(server, {2, 2, 1});
  CHECK(reply.transport == TransportStatus::timeout);
  CHECK(reply.status == 200);
  CHECK(transport_failure(reply)->error_class == "timeout");
}

TEST_CASE("D5: headers and half a body, then the end") {
  const char* half =
      GENERATE("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"hal\r\n");
  SocketServer server([half](Connection& connection, int) {
    connection.next_request();
    connection.send(half);
  });
  const HttpReply reply = ask(server);
  CHECK(reply.transport == TransportStatus::partial_body);
  CHECK(transport_failure(reply)->error_class == "partial_body");
  CHECK(transport_failure(reply)->retry);
}

TEST_CASE("half a header is no answer either") {
  SocketServer server([](Connection& connection, int) {
    connection.next_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Le");
  });
  const HttpReply reply = ask(server);
  CHECK(reply.transport == TransportStatus::partial_body);
  CHECK(reply.transport_message == "the connection ended within the header");
  CHECK(transport_failure(reply)->retry);
}

TEST_CASE("a reset before the first byte of a fresh connection is told") {
  SocketServer server([](Connection& connection, int) { connection.next_request(); });
  const HttpReply reply = ask(server);
  CHECK(reply.transport == TransportStatus::reset);
  CHECK(server.connections() == 1);
}

TEST_CASE(
    "D3: a kept connection that the server closes under the next request is replaced silently") {
  SocketServer server([](Connection& connection, int number) {
    connection.next_request();
    connection.send(http("{\"connection\":" + std::to_string(number) + "}"));
    connection.next_request();  // and closes without an answer
  });
  const auto transport = make_curl_transport();
  CHECK(exchange(*transport, to(server), {"POST", "/p", "{}"}).body == "{\"connection\":1}");
  const HttpReply second = exchange(*transport, to(server), {"POST", "/p", "{}"});
  CHECK(second.transport == TransportStatus::ok);
  CHECK(second.body == "{\"connection\":2}");
}

TEST_CASE("nobody listens") {
  const auto transport = make_curl_transport();
  Endpoint endpoint;
  endpoint.base_url = "http://127.0.0.1:" + std::to_string(free_port());
  const HttpReply reply = exchange(*transport, endpoint, {"GET", "/health", ""});
  CHECK(reply.transport == TransportStatus::connect_failed);
  CHECK(reply.status == 0);
  CHECK_FALSE(reply.transport_message.empty());
}

TEST_CASE("addresses that are none") {
  const auto transport = make_curl_transport();
  Endpoint endpoint;
  endpoint.base_url = GENERATE("ftp://127.0.0.1:1", "http://a b", "file:///etc/passwd");
  const HttpReply reply = exchange(*transport, endpoint, {"GET", "/x", ""});
  CHECK(reply.transport == TransportStatus::other);
  CHECK_FALSE(transport_failure(reply)->retry);
  CHECK(reply.body.empty());
}

TEST_CASE("redirects are not followed, and the key goes nowhere else") {
  SocketServer elsewhere(always(http("{\"stolen\":true}")));
  SocketServer server(always(http("", "302 Found", "Location: " + elsewhere.url() + "/x\r\n")));
  const HttpReply reply = ask(server);
  CHECK(reply.status == 302);
  CHECK(elsewhere.connections() == 0);
  CHECK_FALSE(transport_failure(reply)->retry);
}

TEST_CASE("gzip and chunks are taken apart") {
  const std::string zipped(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xaa\xca\x2c\x28\x48\x4d\x51\xb2\x2a\x29\x2a"
      "\x4d\xad"
      "\x05\x00\x84\x28\xbc\x08\x0f\x00\x00\x00",
      35);
  SocketServer gzip(always(http(zipped, "200 OK", "Content-Encoding: gzip\r\n")));
  CHECK(ask(gzip).body == "{\"zipped\":true}");
  SocketServer chunked(always(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n"));
  CHECK(ask(chunked).body == "{\"a\":1}");
  SocketServer trailed(
      always("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
             "2\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n"));
  CHECK(ask(trailed).transport == TransportStatus::ok);
  CHECK(ask(trailed).body == "{}");
  SocketServer broken(always(http("\x1f\x8bnot gzip", "200 OK", "Content-Encoding: gzip\r\n")));
  CHECK(ask(broken).transport != TransportStatus::ok);
}

TEST_CASE("a body that is too large is cut off") {
  SocketServer server(always(http(std::string(5000, 'x'))));
  const auto transport = make_curl_transport(4999);
  const HttpReply reply = exchange(*transport, to(server), {"GET", "/x", ""});
  CHECK(reply.transport == TransportStatus::too_large);
  CHECK(reply.transport_message == "reply larger than 4999 bytes");
  CHECK_FALSE(transport_failure(reply)->retry);
  const auto larger = make_curl_transport(5000);
  CHECK(exchange(*larger, to(server), {"GET", "/x", ""}).body.size() == 5000);
}

TEST_CASE("wait hints are passed on") {
  SocketServer server(
      always(http("{}", "429 Too Many", "Retry-After: 7\r\nretry-after-ms: 1500\r\n")));
  const HttpReply reply = ask(server);
  CHECK(reply.status == 429);
  CHECK(reply.retry_after == "7");
  CHECK(reply.retry_after_ms == "1500");
}

TEST_CASE("a proxy from the environment is not used for loopback addresses") {
  SocketServer server(always(http("{}")));
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  const HttpReply reply = ask(server);
  unsetenv("http_proxy");
  CHECK(reply.status == 200);
}

TEST_CASE("a key that would break the header is refused without being shown") {
  const auto transport = make_curl_transport();
  Endpoint endpoint;
  endpoint.base_url = "http://127.0.0.1:1";
  endpoint.bearer_key = "secret\r\nX-Evil: 1";
  try {
    transport->start(endpoint, {"GET", "/", ""}, [](HttpReply) {});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()).find("secret") == std::string::npos);
  }
}
