#include "backend/transport.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "backend/redact.h"
#include "base/error.h"

namespace preval {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Servers close idle connections after 5 s (vLLM's default); leaving them alone before that spares
/// a reset on a connection that only looks alive.
constexpr long kLongestIdleSeconds = 4;

milliseconds to_ms(double seconds) {
  return milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds * 1000)));
}

bool is_loopback(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parts(curl_url(), curl_url_cleanup);
  char* host = nullptr;
  if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parts.get(), CURLUPART_HOST, &host, 0) != CURLUE_OK) {
    return false;  // libcurl itself will say what is wrong with this address
  }
  const std::string name(host);
  curl_free(host);
  return name == "localhost" || name == "[::1]" || name.rfind("127.", 0) == 0;
}

/// One request under way, with the libcurl handle that carries it.
struct Exchange {
  CURL* easy = nullptr;
  HttpRequest request;
  HttpReply reply;
  std::string key;
  Transport::Done done;
  steady_clock::time_point first_byte_due;
  double first_byte_s = 0;
  std::size_t body_limit = 0;
  bool replied = false;       // a byte of the answer has come
  bool header_ended = false;  // the empty line behind the header, too
  bool too_large = false;
  char words[CURL_ERROR_SIZE] = {};

  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() { curl_easy_cleanup(easy); }
};

std::size_t on_header(char* line, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.replied = true;
  const std::string_view text(line, size * count);
  if (text.rfind("HTTP/", 0) == 0)
    exchange.header_ended = false;  // an interim reply may come first
  if (text == "\r\n" || text == "\n") exchange.header_ended = true;
  return size * count;
}

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::size_t length = size * count;
  std::string& body = exchange.reply.body;
  if (length > exchange.body_limit - body.size()) {
    exchange.too_large = true;
    return CURL_WRITEFUNC_ERROR;
  }
  if (body.empty()) {
    curl_off_t announced = -1;
    curl_easy_getinfo(exchange.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
    if (announced > 0) body.reserve(std::min<std::size_t>(announced, exchange.body_limit));
  }
  body.append(bytes, length);
  return length;
}

TransportStatus status_of(CURLcode code, const Exchange& exchange) {
  switch (code) {
    // To libcurl a connection that ends within the header is a reply without a body.
    case CURLE_OK:
      return exchange.header_ended ? TransportStatus::ok : TransportStatus::partial_body;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      return TransportStatus::connect_failed;
    case CURLE_OPERATION_TIMEDOUT:
      return TransportStatus::timeout;
    case CURLE_PARTIAL_FILE:
    case CURLE_BAD_CONTENT_ENCODING:
      return TransportStatus::partial_body;
    case CURLE_GOT_NOTHING:
      return TransportStatus::reset;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2_STREAM:
      return exchange.replied ? TransportStatus::partial_body : TransportStatus::reset;
    case CURLE_WRITE_ERROR:
    case CURLE_FILESIZE_EXCEEDED:
      return exchange.too_large || code == CURLE_FILESIZE_EXCEEDED ? TransportStatus::too_large
                                                                   : TransportStatus::other;
    default:
      return TransportStatus::other;
  }
}

std::string header(CURL* easy, const char* name) {
  curl_header* found = nullptr;
  if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &found) != CURLHE_OK) return {};
  return found->value;
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(std::size_t body_limit) : body_limit_(body_limit) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        (multi_ = curl_multi_init()) == nullptr) {
      throw Error(ErrorKind::io, "libcurl cannot be started");
    }
  }

  ~CurlTransport() override {
    for (const auto& exchange : active_) curl_multi_remove_handle(multi_, exchange->easy);
    active_.clear();
    finished_.clear();
    idle_.clear();
    for (const auto& [key, list] : headers_) curl_slist_free_all(list);
    curl_multi_cleanup(multi_);
    curl_global_cleanup();
  }

  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  void start(const Endpoint& endpoint, HttpRequest request, Done done) override {
    std::unique_ptr<Exchange> exchange = take_idle();
    exchange->request = std::move(request);
    exchange->reply = {};
    exchange->key = endpoint.bearer_key;
    exchange->done = std::move(done);
    exchange->replied = exchange->header_ended = exchange->too_large = false;
    exchange->words[0] = '\0';
    exchange->first_byte_s = endpoint.timeouts.first_byte_s;
    exchange->first_byte_due = steady_clock::now() + to_ms(endpoint.timeouts.first_byte_s);
    configure(*exchange, endpoint);
    if (const CURLMcode code = curl_multi_add_handle(multi_, exchange->easy); code != CURLM_OK) {
      throw Error(ErrorKind::io,
                  fmt::format("libcurl refuses a request: {}", curl_multi_strerror(code)));
    }
    active_.push_back(std::move(exchange));
  }

  void wait(milliseconds at_most) override {
    const auto until = steady_clock::now() + at_most;
    while (true) {
      int running = 0;
      curl_multi_perform(multi_, &running);
      collect();
      expire();
      if (!finished_.empty()) return deliver();
      const auto now = steady_clock::now();
      if (now >= until) return;
      auto next = until;
      for (const auto& exchange : active_) {
        if (!exchange->replied) next = std::min(next, exchange->first_byte_due);
      }
      // One more millisecond, so that a deadline has passed when the wait for it is over.
      const auto pause = std::chrono::duration_cast<milliseconds>(next - now) + milliseconds(1);
      curl_multi_poll(multi_, nullptr, 0,
                      static_cast<int>(std::max<std::int64_t>(0, pause.count())), nullptr);
    }
  }

  std::size_t in_flight() const override { return active_.size() + finished_.size(); }

 private:
  std::unique_ptr<Exchange> take_idle() {
    if (!idle_.empty()) {
      std::unique_ptr<Exchange> exchange = std::move(idle_.back());
      idle_.pop_back();
      return exchange;
    }
    auto exchange = std::make_unique<Exchange>();
    CURL* easy = exchange->easy = curl_easy_init();
    if (easy == nullptr) throw Error(ErrorKind::io, "libcurl gives no handle: out of memory");
    exchange->body_limit = body_limit_;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange.get());
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->words);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange.get());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange.get());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "preval");
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, kLongestIdleSeconds);
    return exchange;
  }

  void configure(Exchange& exchange, const Endpoint& endpoint) {
    CURL* easy = exchange.easy;
    const std::string url = endpoint.base_url + exchange.request.path;
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    if (exchange.request.method == "GET") {
      curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    } else {
      curl_easy_setopt(easy, CURLOPT_POST, 1L);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange.request.body.data());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(exchange.request.body.size()));
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_for(endpoint.bearer_key));
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(to_ms(endpoint.timeouts.connect_s).count()));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(to_ms(endpoint.timeouts.total_s).count()));
    if (endpoint.base_url != base_url_) {
      base_url_ = endpoint.base_url;
      loopback_ = is_loopback(base_url_);
    }
    // An empty proxy means none; no value means whatever the environment says. A key that is not
    // encrypted is for its server alone, and no proxy may read it.
    const bool secret = !endpoint.bearer_key.empty() && base_url_.rfind("https", 0) != 0;
    curl_easy_setopt(easy, CURLOPT_PROXY, loopback_ || secret ? "" : nullptr);
    // TLS may write to a closed socket, which libcurl then has to shield from SIGPIPE.
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, base_url_.rfind("https", 0) == 0 ? 0L : 1L);
  }

  curl_slist* headers_for(const std::string& key) {
    const auto found = headers_.find(key);
    if (found != headers_.end()) return found->second;
    for (const char c : key) {
      if (static_cast<unsigned char>(c) < 0x21 || c == 0x7F) {
        throw Error(ErrorKind::usage, "the bearer key holds white space or a control character",
                    "check the environment variable; the key itself is not shown");
      }
    }
    curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
    list = curl_slist_append(list, "Expect:");
    if (!key.empty()) list = curl_slist_append(list, ("Authorization: Bearer " + key).c_str());
    return headers_[key] = list;
  }

  void finish(Exchange* raw, CURLcode code) {
    const auto found = std::find_if(active_.begin(), active_.end(),
                                    [&](const auto& exchange) { return exchange.get() == raw; });
    std::unique_ptr<Exchange> exchange = std::move(*found);
    *found = std::move(active_.back());
    active_.pop_back();
    HttpReply& reply = exchange->reply;
    reply.transport = status_of(code, *exchange);
    if (code != CURLE_OK) {
      reply.transport_message =
          exchange->words[0] != '\0' ? exchange->words : curl_easy_strerror(code);
    } else if (reply.transport != TransportStatus::ok) {
      reply.transport_message = "the connection ended within the header";
    }
    if (reply.transport == TransportStatus::too_large) {
      reply.transport_message = fmt::format("reply larger than {} bytes", exchange->body_limit);
    }
    describe(*exchange);
    redact(reply, exchange->key);
    curl_multi_remove_handle(multi_, exchange->easy);
    finished_.push_back(std::move(exchange));
  }

  static void describe(Exchange& exchange) {
    CURL* easy = exchange.easy;
    HttpReply& reply = exchange.reply;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply.status);
    char* type = nullptr;
    if (curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type != nullptr) {
      reply.content_type = type;
    }
    curl_off_t total = 0, sending = 0;
    curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &total);
    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sending);
    reply.total_ms = static_cast<double>(total - sending) / 1000;
    if (reply.status >= 300) {
      reply.retry_after = header(easy, "retry-after");
      reply.retry_after_ms = header(easy, "retry-after-ms");
      reply.location = header(easy, "location");
    }
  }

  void collect() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      char* raw = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &raw);
      finish(reinterpret_cast<Exchange*>(raw), code);
    }
  }

  /// libcurl has time limits for connecting and for the whole, not for the first byte.
  void expire() {
    const auto now = steady_clock::now();
    for (std::size_t i = active_.size(); i-- > 0;) {
      Exchange& exchange = *active_[i];
      if (exchange.replied || now < exchange.first_byte_due) continue;
      const std::string words = fmt::format("no answer within {} s", exchange.first_byte_s);
      words.copy(exchange.words, sizeof exchange.words - 1);
      exchange.words[std::min(words.size(), sizeof exchange.words - 1)] = '\0';
      finish(&exchange, CURLE_OPERATION_TIMEDOUT);
    }
  }

  /// Callbacks may start requests, and may throw: what they have not seen stays for the next wait.
  void deliver() {
    for (std::size_t n = finished_.size(); n > 0; --n) {
      std::unique_ptr<Exchange> exchange = std::move(finished_.front());
      finished_.pop_front();
      const Done done = std::exchange(exchange->done, nullptr);
      HttpReply reply = std::exchange(exchange->reply, {});
      idle_.push_back(std::move(exchange));
      done(std::move(reply));
    }
  }

  std::size_t body_limit_;
  CURLM* multi_ = nullptr;
  std::vector<std::unique_ptr<Exchange>> active_, idle_;
  std::deque<std::unique_ptr<Exchange>> finished_;
  std::map<std::string, curl_slist*> headers_;
  std::string base_url_;
  bool loopback_ = false;
};

}  // namespace

std::string_view to_text(TransportStatus value) {
  switch (value) {
    case TransportStatus::ok:
      return "ok";
    case TransportStatus::connect_failed:
      return "connect_failed";
    case TransportStatus::reset:
      return "reset";
    case TransportStatus::timeout:
      return "timeout";
    case TransportStatus::partial_body:
      return "partial_body";
    case TransportStatus::too_large:
      return "too_large";
    case TransportStatus::not_recorded:
      return "not_recorded";
    case TransportStatus::other:
      break;
  }
  return "transport_error";
}

std::unique_ptr<Transport> make_curl_transport(std::size_t body_limit) {
  return std::make_unique<CurlTransport>(body_limit);
}

std::string base_address(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

HttpReply exchange(Transport& transport, const Endpoint& endpoint, HttpRequest request) {
  HttpReply result;
  bool over = false;
  transport.start(endpoint, std::move(request), [&](HttpReply reply) {
    result = std::move(reply);
    over = true;
  });
  while (!over) transport.wait(milliseconds(1000));
  return result;
}

Ask asker(Transport& transport, const Endpoint& endpoint) {
  return [&](HttpRequest request) { return exchange(transport, endpoint, std::move(request)); };
}

}  // namespace preval
