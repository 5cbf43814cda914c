#pragma once
// The six protocols, answered by the little model. Reads are taken apart by a scanner and answered
// without a JSON document, which is where the speed comes from; everything else is asked a few
// times per run and goes through nlohmann/json.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model.h"
#include "script.h"

namespace preval::test_server {

/// Fills in the answer of one protocol. `spoil` names what is to be wrong with the numbers of a
/// read (script.h), empty for nothing.
class Protocol {
 public:
  virtual ~Protocol() = default;
  virtual void answer(const Request& request, const std::string& spoil, Reply& reply) = 0;
};

/// Throws std::runtime_error for a kind that is none. The script must outlive it: its version and
/// model may change.
std::unique_ptr<Protocol> make_protocol(const Script& script);

/// Script, protocol and HTTP together.
class Service {
 public:
  /// `seen` is told of every request, on the thread that serves.
  using Seen = std::function<void(const Request&)>;
  explicit Service(Script script, Seen seen = {});
  int port() const { return http_.port(); }
  std::int64_t connections() const { return http_.connections(); }
  std::int64_t requests() const { return requests_; }
  void run() { http_.run(); }
  void stop() { http_.stop(); }

 private:
  void handle(const Request& request, Reply& reply);

  Script script_;
  Seen seen_;
  std::unique_ptr<Protocol> protocol_;
  std::atomic<std::int64_t> requests_{0};
  HttpServer http_;
};

/// A Service on a thread of its own, for tests: it serves until the object goes.
class TestServer {
 public:
  explicit TestServer(const Json& script, Service::Seen seen = {})
      : service_(parse_script(script), std::move(seen)) {
    thread_ = std::thread([this] { service_.run(); });
  }
  ~TestServer() {
    service_.stop();
    thread_.join();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return service_.port(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }
  std::int64_t connections() const { return service_.connections(); }
  std::int64_t requests() const { return service_.requests(); }

 private:
  Service service_;
  std::thread thread_;
};

}  // namespace preval::test_server
