#pragma once
// The HTTP seam. Protocols say what to ask and understand what comes back; everything about
// sockets, time limits and half-received bodies is here, once.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace preval {

struct HttpRequest {
  std::string method = "POST";
  std::string path;         ///< "/completion"
  std::string body;         ///< JSON, or empty
  int repeat = 0;           ///< tells equal requests apart in transcripts; never sent
  std::int64_t tokens = 0;  ///< prompt tokens that the server reads for it, for rates; never sent
};

/// How an exchange ended below HTTP.
enum class TransportStatus {
  ok,
  connect_failed,
  reset,
  timeout,
  partial_body,
  too_large,
  other,
  not_recorded  ///< replays only: nobody has asked this before
};
std::string_view to_text(TransportStatus value);

struct HttpReply {
  TransportStatus transport = TransportStatus::ok;
  std::string transport_message;  ///< what happened, in words, when not ok
  long status = 0;                ///< HTTP status; 0 when there is none
  std::string body;
  std::string content_type, retry_after, retry_after_ms;
  std::string location;  ///< of a redirect, which is never followed
  double total_ms = 0;   ///< request sent → last byte
};

/// Where requests go.
struct Endpoint {
  std::string base_url;    ///< "http://127.0.0.1:8080", no trailing slash
  std::string bearer_key;  ///< sent to this host only; taken out of everything that comes back
  Timeouts timeouts;
};

/// An address as people write it, without the slashes at its end.
std::string base_address(std::string url);

/// Exchanges in flight on one thread. Callbacks run inside wait(), never inside start().
class Transport {
 public:
  virtual ~Transport() = default;
  using Done = std::function<void(HttpReply)>;
  virtual void start(const Endpoint& endpoint, HttpRequest request, Done done) = 0;
  /// Waits until something ended or the time is over; runs the callbacks of what ended.
  virtual void wait(std::chrono::milliseconds at_most) = 0;
  virtual std::size_t in_flight() const = 0;
};

/// Largest body accepted unless said otherwise: twice a full-vocabulary reply of 262k tokens.
inline constexpr std::size_t kLargestBody = std::size_t{64} << 20;

/// libcurl's multi interface: keep-alive (connections idle for 4 s are not used again), no
/// redirects, no proxies from the environment for loopback addresses, gzip accepted, bodies of at
/// most `body_limit` bytes. A reset before the first byte on a reused connection is tried once more
/// on a fresh one, by libcurl itself. The bearer key does not come back out: replies that hold it
/// are handed over without it, so that no message, row or transcript can.
std::unique_ptr<Transport> make_curl_transport(std::size_t body_limit = kLargestBody);

/// One exchange, waited for. For boot polls and the probe.
HttpReply exchange(Transport& transport, const Endpoint& endpoint, HttpRequest request);

/// Something that makes one exchange and waits for it.
using Ask = std::function<HttpReply(HttpRequest)>;
/// Both arguments must outlive it.
Ask asker(Transport& transport, const Endpoint& endpoint);

}  // namespace preval
