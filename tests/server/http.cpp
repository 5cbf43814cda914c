#include "http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace preval::test_server {

namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::size_t kBlock = 256 * 1024;
constexpr std::size_t kChunk = 700;  // bytes of a chunk: odd enough to cut numbers apart

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 302:
      return "Found";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 429:
      return "Too Many Requests";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    default:
      return "Whatever";
  }
}

void append_number(std::string& text, std::size_t number, int base = 10) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  text.append(digits.data(), end);
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1)));
  }
  return ~crc;
}

void append_little_endian(std::string& text, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
}

/// The value of a header, in lower case names only for the one that matters.
std::size_t content_length(std::string_view head) {
  static constexpr std::string_view name = "content-length:";
  for (std::size_t line = head.find('\n'); line != std::string_view::npos;
       line = head.find('\n', line + 1)) {
    const std::string_view rest = head.substr(line + 1);
    if (rest.size() < name.size()) return 0;
    std::size_t i = 0;
    while (i < name.size() && (rest[i] | 0x20) == (name[i] | 0x20)) ++i;
    if (i < name.size()) continue;
    while (i < rest.size() && rest[i] == ' ') ++i;
    std::size_t length = 0;
    std::from_chars(rest.data() + i, rest.data() + rest.size(), length);
    return length;
  }
  return 0;
}

bool ends_header(Ending ending) {
  return ending == Ending::reset_after_header || ending == Ending::close_after_header ||
         ending == Ending::stall_after_header;
}

bool halves_body(Ending ending) {
  return ending == Ending::partial || ending == Ending::stall_in_body;
}

}  // namespace

std::string gzipped(std::string_view bytes) {
  std::string out("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10);
  std::string_view left = bytes;
  do {
    const std::string_view block = left.substr(0, 0xFFFF);
    left.remove_prefix(block.size());
    out += left.empty() ? '\x01' : '\x00';
    append_little_endian(out, static_cast<std::uint32_t>(block.size()), 2);
    append_little_endian(out, ~static_cast<std::uint32_t>(block.size()), 2);
    out += block;
  } while (!left.empty());
  append_little_endian(out, crc32(bytes), 4);
  append_little_endian(out, static_cast<std::uint32_t>(bytes.size()), 4);
  return out;
}

void render(const Reply& reply, std::string& out) {
  if (!reply.raw.empty()) {
    out += reply.raw;
    return;
  }
  std::string zipped;
  if (reply.gzip) zipped = gzipped(reply.body);
  const std::string_view body = reply.gzip ? std::string_view(zipped) : reply.body;
  out += "HTTP/1.1 ";
  append_number(out, static_cast<std::size_t>(reply.status));
  out += ' ';
  out += reason_of(reply.status);
  out += "\r\nContent-Type: ";
  out += reply.content_type;
  if (reply.gzip) out += "\r\nContent-Encoding: gzip";
  if (reply.close) out += "\r\nConnection: close";
  if (reply.chunked) {
    out += "\r\nTransfer-Encoding: chunked\r\n";
  } else {
    out += "\r\nContent-Length: ";
    append_number(out, body.size());
    out += "\r\n";
  }
  out += reply.headers;
  out += "\r\n";
  if (ends_header(reply.ending)) return;
  const std::string_view sent = halves_body(reply.ending) ? body.substr(0, body.size() / 2) : body;
  if (!reply.chunked) {
    out += sent;
    return;
  }
  for (std::size_t at = 0; at < sent.size(); at += kChunk) {
    const std::string_view chunk = sent.substr(at, kChunk);
    append_number(out, chunk.size(), 16);
    out += "\r\n";
    out += chunk;
    out += "\r\n";
  }
  if (!halves_body(reply.ending)) out += "0\r\n\r\n";
}

HttpServer::HttpServer(const Options& options, Handler handler)
    : options_(options), handler_(std::move(handler)), block_(kBlock, '\0') {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(options.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const int reason = errno;
    close(listener_);
    throw std::runtime_error(std::string("cannot bind: ") + std::strerror(reason));
  }
  port_ = ntohs(address.sin_port);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{EPOLLIN, {}};
  event.data.fd = wake_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  start_ = Clock::now();
  if (options.listen_after_s <= 0) open_door();
}

HttpServer::~HttpServer() {
  for (auto& [fd, connection] : connections_) close(fd);
  close(listener_);
  close(wake_);
  close(epoll_);
}

void HttpServer::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

void HttpServer::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    run_due();
    const int count = epoll_wait(epoll_, events.data(), events.size(), next_timeout_ms());
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == wake_) return;
      if (fd == listener_) {
        accept_all();
        continue;
      }
      const auto found = connections_.find(fd);
      if (found == connections_.end()) continue;
      if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) {
        if (write(found->second)) serve(found->second);
      } else {
        readable(found->second);
      }
    }
  }
}

int HttpServer::next_timeout_ms() {
  if (listening_ && options_.idle_close_s <= 0 && due_.empty()) return -1;
  auto next = Clock::now() + milliseconds(20);  // the grain of idle closing
  if (listening_ && options_.idle_close_s <= 0) next = due_.top().at;
  if (!due_.empty() && due_.top().at < next) next = due_.top().at;
  const auto left = duration_cast<milliseconds>(next - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left) + 1;
}

void HttpServer::open_door() {
  listening_ = true;
  listen(listener_, 256);
  epoll_event event{EPOLLIN, {}};
  event.data.fd = listener_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
}

void HttpServer::run_due() {
  const auto now = Clock::now();
  if (!listening_ && now - start_ >= duration<double>(options_.listen_after_s)) open_door();
  while (!due_.empty() && due_.top().at <= now) {
    const Due due = due_.top();
    due_.pop();
    const auto found = connections_.find(due.fd);
    if (found == connections_.end() || found->second.number != due.number) continue;
    found->second.held = false;
    answer(found->second, *due.reply);
    if (const auto still = connections_.find(due.fd); still != connections_.end()) {
      serve(still->second);
    }
  }
  if (options_.idle_close_s <= 0) return;
  std::vector<int> idle;
  for (const auto& [fd, connection] : connections_) {
    const bool waits = connection.in.empty() && connection.out.empty() && !connection.held;
    if (waits && now - connection.last >= duration<double>(options_.idle_close_s)) {
      idle.push_back(fd);
    }
  }
  for (const int fd : idle) drop(connections_.at(fd), false);
}

void HttpServer::accept_all() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection& connection = connections_[fd];
    connection.fd = fd;
    connection.number = ++numbers_;
    connection.last = Clock::now();
    ++accepted_;
    epoll_event event{EPOLLIN, {}};
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
}

void HttpServer::readable(Connection& connection) {
  const ssize_t got = recv(connection.fd, block_.data(), block_.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(connection, false);
  connection.in.append(block_.data(), static_cast<std::size_t>(got));
  serve(connection);
}

void HttpServer::serve(Connection& connection) {
  const int fd = connection.fd;
  while (!connection.held && connection.out.empty()) {
    const std::string_view in = connection.in;
    const std::size_t end = in.find("\r\n\r\n");
    if (end == std::string_view::npos) return;
    Request request;
    request.head = in.substr(0, end + 2);
    const std::size_t length = content_length(request.head);
    if (in.size() < end + 4 + length) return;
    request.body = in.substr(end + 4, length);
    const std::size_t space = in.find(' ');
    request.method = in.substr(0, space);
    request.path = in.substr(space + 1, in.find(' ', space + 1) - space - 1);
    Reply reply;
    handler_(request, reply);
    connection.in.erase(0, end + 4 + length);
    connection.last = Clock::now();
    if (reply.delay_s > 0) {
      connection.held = true;
      const auto at =
          connection.last + duration_cast<Clock::duration>(duration<double>(reply.delay_s));
      due_.push({at, fd, connection.number, std::make_shared<Reply>(std::move(reply))});
      return;
    }
    answer(connection, reply);
    if (!connections_.contains(fd)) return;
  }
}

void HttpServer::answer(Connection& connection, const Reply& reply) {
  if (reply.ending == Ending::reset) return drop(connection, true);
  if (reply.ending == Ending::close) return drop(connection, false);
  if (reply.ending == Ending::stall) {
    connection.held = true;
    return;
  }
  render(reply, connection.out);
  connection.held =
      reply.ending == Ending::stall_after_header || reply.ending == Ending::stall_in_body;
  connection.reset_after = reply.ending == Ending::reset_after_header;
  connection.close_after =
      reply.close || reply.ending == Ending::close_after_header || reply.ending == Ending::partial;
  write(connection);
}

bool HttpServer::write(Connection& connection) {
  while (connection.sent < connection.out.size()) {
    const ssize_t sent = send(connection.fd, connection.out.data() + connection.sent,
                              connection.out.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      want(connection, true);
      return true;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      drop(connection, false);
      return false;
    }
    connection.sent += static_cast<std::size_t>(sent);
  }
  connection.out.clear();
  connection.sent = 0;
  want(connection, false);
  if (!connection.close_after && !connection.reset_after) return true;
  drop(connection, connection.reset_after);
  return false;
}

void HttpServer::want(Connection& connection, bool writable) {
  if (connection.writable_wanted == writable) return;
  connection.writable_wanted = writable;
  epoll_event event{writable ? EPOLLOUT : EPOLLIN, {}};
  event.data.fd = connection.fd;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
}

void HttpServer::drop(Connection& connection, bool reset) {
  const int fd = connection.fd;
  if (reset) {
    const linger now{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  close(fd);
  connections_.erase(fd);
}

}  // namespace preval::test_server
