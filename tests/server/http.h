#pragma once
// An HTTP server for tests: one thread, epoll, keep-alive, and every way of misbehaving that a
// script may ask for. It knows nothing of protocols: a handler fills in a Reply.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace preval::test_server {

struct Request {
  std::string_view method, path, head, body;  ///< head: request line and headers as they came
};

/// How a reply ends before it should.
enum class Ending {
  whole,
  reset,               ///< RST instead of an answer
  close,               ///< orderly end instead of an answer
  stall,               ///< nothing, and the connection stays open
  reset_after_header,  ///< header, then RST
  close_after_header,
  stall_after_header,
  partial,       ///< header and half of the body, then an orderly end
  stall_in_body  ///< header and half of the body, then nothing
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::string headers;  ///< more header lines, each with its CRLF
  std::string body;
  std::string raw;  ///< when not empty: sent as it is, instead of all the above
  double delay_s = 0;
  Ending ending = Ending::whole;
  bool chunked = false, gzip = false, close = false;
};

/// The bytes of a reply, up to where its ending lets it come.
void render(const Reply& reply, std::string& out);
/// A gzip stream (RFC 1952) of stored blocks.
std::string gzipped(std::string_view bytes);

class HttpServer {
 public:
  using Handler = std::function<void(const Request&, Reply&)>;
  struct Options {
    int port = 0;               ///< 0: any
    double idle_close_s = 0;    ///< > 0: connections idle for so long are closed
    double listen_after_s = 0;  ///< until then connections are refused
  };

  /// Binds at once, so that port() is known, and listens unless it is to be late. Throws
  /// std::runtime_error when the port is taken.
  HttpServer(const Options& options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  /// Serves until stop() is called, from any thread or signal handler.
  void run();
  void stop();
  std::int64_t connections() const { return accepted_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    int fd = -1;
    std::uint64_t number = 0;
    std::string in, out;
    std::size_t sent = 0;
    bool held = false;  // a reply is on its way, or never will be
    bool close_after = false, reset_after = false, writable_wanted = false;
    Clock::time_point last;
  };
  struct Due {
    Clock::time_point at;
    int fd;
    std::uint64_t number;  // of the connection that had this fd then
    std::shared_ptr<Reply> reply;
    bool operator<(const Due& other) const { return at > other.at; }
  };

  void open_door();
  void accept_all();
  void readable(Connection& connection);
  /// Answers what is complete in connection.in, one request after the other.
  void serve(Connection& connection);
  void answer(Connection& connection, const Reply& reply);
  /// False when the connection is gone.
  bool write(Connection& connection);
  void drop(Connection& connection, bool reset);
  void want(Connection& connection, bool writable);
  int next_timeout_ms();
  void run_due();

  Options options_;
  Handler handler_;
  int listener_ = -1, epoll_ = -1, wake_ = -1, port_ = 0;
  bool listening_ = false;
  Clock::time_point start_;
  std::unordered_map<int, Connection> connections_;
  std::priority_queue<Due> due_;
  std::uint64_t numbers_ = 0;
  std::atomic<std::int64_t> accepted_{0};
  std::string block_;
};

}  // namespace preval::test_server
