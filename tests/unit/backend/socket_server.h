#pragma once
// A server of a few lines for tests of the transport: every connection is handled by a function
// that sees whole requests and writes whatever bytes it likes, or nothing, or closes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace preval::test {

/// One connection, as a handler sees it.
class Connection {
 public:
  Connection(int descriptor, const std::atomic<bool>& over)
      : descriptor_(descriptor), over_(over) {}

  /// The next request with its body; empty when the client has closed.
  std::string next_request() {
    std::string text = std::move(rest_);
    while (true) {
      const std::size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos) {
        std::size_t length = 0;
        if (const std::size_t at = text.find("Content-Length: "); at < head) {
          length = std::strtoul(text.c_str() + at + 16, nullptr, 10);
        }
        if (text.size() >= head + 4 + length) {
          rest_ = text.substr(head + 4 + length);
          return text.substr(0, head + 4 + length);
        }
      }
      pollfd waiting{descriptor_, POLLIN, 0};
      while (poll(&waiting, 1, 20) == 0) {
        if (over_) return {};
      }
      char block[4096];
      const ssize_t got = recv(descriptor_, block, sizeof block, 0);
      if (got <= 0) return {};
      text.append(block, static_cast<std::size_t>(got));
    }
  }
  void send(const std::string& bytes) const {
    [[maybe_unused]] const auto sent =
        ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Waits until the client closes or the test ends.
  void hang() {
    while (!next_request().empty()) {
    }
  }

 private:
  int descriptor_;
  const std::atomic<bool>& over_;
  std::string rest_;
};

class SocketServer {
 public:
  /// `number` counts connections from 1.
  using Handler = std::function<void(Connection&, int number)>;

  explicit SocketServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener_, 64) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~SocketServer() {
    over_ = true;
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    close(listener_);
  }
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }

 private:
  void accept_all() {
    while (!over_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (poll(&waiting, 1, 20) <= 0) continue;
      const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor < 0) continue;
      threads_.emplace_back([this, descriptor, number = ++connections_] {
        Connection connection(descriptor, over_);
        handler_(connection, number);
        close(descriptor);
      });
    }
  }

  Handler handler_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> over_{false};
  std::atomic<int> connections_{0};
  std::thread acceptor_;
  std::vector<std::thread> threads_;
};

inline std::string http(const std::string& body, const std::string& status = "200 OK",
                        const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Answers every request of every connection alike.
inline SocketServer::Handler always(std::string reply) {
  return [reply](Connection& connection, int) {
    while (!connection.next_request().empty()) connection.send(reply);
  };
}

}  // namespace preval::test
