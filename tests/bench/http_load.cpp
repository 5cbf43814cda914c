// http_load PORT [connections [seconds [prompt tokens [POST path]]]]: keeps every connection busy
// with one request at a time, no pipelining, and says how many replies came per second. The request
// is vLLM's read by id of 18 labels unless a file with a body is named by HTTP_LOAD_BODY.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

struct Connection {
  int fd = -1;
  std::string in;
};

std::string read_by_id(int tokens) {
  std::string body = R"({"model":"test-model","prompt":[)";
  for (int i = 0; i < tokens; ++i)
    body += (i > 0 ? "," : "") + std::to_string(1000 + 37 * i % 30000);
  body += R"(],"max_tokens":1,"temperature":0,"logprobs":1,"logprob_token_ids":[)";
  for (int i = 0; i < 18; ++i) body += (i > 0 ? "," : "") + std::to_string(324 + i);
  return body +
         R"(],"return_tokens_as_token_ids":true,"return_token_ids":true,"add_special_tokens":false})";
}

/// Whether `in` holds one whole reply.
bool whole(const std::string& in) {
  const std::size_t head = in.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  const std::size_t at = in.find("Content-Length: ");
  if (at >= head) return false;
  return in.size() >= head + 4 + std::strtoul(in.c_str() + at + 16, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int n, int usual) { return argc > n ? std::atoi(argv[n]) : usual; };
  const int port = argument(1, 0), count = argument(2, 8), seconds = argument(3, 5);
  std::string body = read_by_id(argument(4, 300));
  const std::string path = argc > 5 ? argv[5] : "/v1/completions";
  if (const char* file = std::getenv("HTTP_LOAD_BODY"); file != nullptr) {
    std::ifstream in(file, std::ios::binary);
    body.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::string request = "POST " + path +
                              " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                              "Content-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
  const int poll = epoll_create1(0);
  std::vector<Connection> connections(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < connections.size(); ++i) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connections[i].fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connections[i].fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      std::cerr << "nobody listens on " << port << '\n';
      return 1;
    }
    const int on = 1;
    setsockopt(connections[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{EPOLLIN, {}};
    event.data.u64 = i;
    epoll_ctl(poll, EPOLL_CTL_ADD, connections[i].fd, &event);
    send(connections[i].fd, request.data(), request.size(), MSG_NOSIGNAL);
  }
  long replies = 0, refused = 0;
  std::size_t bytes = 0;
  std::array<char, 65536> block;
  std::array<epoll_event, 64> events;
  const auto start = std::chrono::steady_clock::now(), end = start + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    const int ready = epoll_wait(poll, events.data(), events.size(), 100);
    for (int i = 0; i < ready; ++i) {
      Connection& connection = connections[events[static_cast<std::size_t>(i)].data.u64];
      const ssize_t got = recv(connection.fd, block.data(), block.size(), 0);
      if (got <= 0) {
        std::cerr << "a connection ended\n";
        return 1;
      }
      connection.in.append(block.data(), static_cast<std::size_t>(got));
      if (!whole(connection.in)) continue;
      ++replies;
      bytes = connection.in.size();
      if (connection.in.compare(9, 3, "200") != 0) ++refused;
      connection.in.clear();
      send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL);
    }
  }
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << static_cast<long>(static_cast<double>(replies) / elapsed) << " replies/s over "
            << count << " connections, " << request.size() << " bytes asked, " << bytes
            << " answered, " << refused << " not 200\n";
  return 0;
}
