#include "backend/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "backend/redact.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace preval {

namespace {

constexpr std::int64_t kLargestCount = std::int64_t{1} << 53;
constexpr std::array kStatuses{TransportStatus::ok,           TransportStatus::connect_failed,
                               TransportStatus::reset,        TransportStatus::timeout,
                               TransportStatus::partial_body, TransportStatus::too_large,
                               TransportStatus::other,        TransportStatus::not_recorded};

void put_bytes(Json& line, const std::string& name, const std::string& bytes) {
  if (bytes.empty()) return;
  if (invalid_utf8(bytes)) {
    line[name + "_base64"] = base64(bytes);
  } else {
    line[name] = bytes;
  }
}

/// One line under reading, for errors that say where.
class Line {
 public:
  Line(const Json& json, std::string_view where, int number)
      : json_(json), where_(where), number_(number) {
    if (!json.is_object()) fail("is no object");
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorKind::usage, fmt::format("{}: line {} {}", where_, number_, what));
  }
  std::string text(const std::string& name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return {};
    if (!found->is_string()) fail(fmt::format("has no text as \"{}\"", name));
    return found->get<std::string>();
  }
  std::string bytes(const std::string& name) const {
    if (!json_.contains(name + "_base64")) return text(name);
    auto bytes = bytes_of_base64(text(name + "_base64"));
    if (!bytes) fail(fmt::format("has no base64 as \"{}_base64\"", name));
    return *std::move(bytes);
  }
  template <class Number>
  Number number(const std::string& name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return 0;
    const bool fits = std::is_floating_point_v<Number>
                          ? found->is_number() && *found >= 0
                          : found->is_number_integer() && *found >= 0 && *found <= kLargestCount;
    if (!fits) fail(fmt::format("has no number as \"{}\", or one that makes no sense", name));
    return found->get<Number>();
  }

 private:
  const Json& json_;
  std::string_view where_;
  int number_;
};

std::string header_line(const TranscriptHeader& header) {
  const Json line{
      {"preval_transcript", kTranscriptVersion}, {"arm", header.arm}, {"kind", header.kind}};
  return line.dump();
}

TranscriptHeader parse_header(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const Line line(json, where, 1);
  const auto version = line.number<int>("preval_transcript");
  if (version == 0) line.fail("is not the first line of a transcript");
  if (version != kTranscriptVersion) {
    line.fail(
        fmt::format("says version {}; this build reads version {}", version, kTranscriptVersion));
  }
  return {line.text("arm"), line.text("kind")};
}

std::string without_v1(std::string path) {
  if (path.starts_with("/v1/")) path.erase(0, 3);
  return path;
}

bool is_json(std::string_view text) {
  try {
    parse_json(text, "line");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// How a file of lines ends. Only the last line can lack its line feed: a writer was stopped, or
/// the machine was.
struct Tail {
  std::size_t kept = 0;    ///< bytes that are whole lines
  bool lacks_end = false;  ///< the last of them has no line feed
  std::string notice;      ///< what was cut off or kept, in words; empty when nothing was
};

/// Calls `each` with every whole line and its number.
template <class Each>
Tail for_lines(std::string_view text, std::string_view where, Each&& each) {
  Tail tail;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      tail.lacks_end = is_json(text);
      tail.notice =
          fmt::format("{}: the last line, {}, has no line end: {}", where, number,
                      tail.lacks_end ? "it is whole and was kept" : "it is torn and was left out");
      if (!tail.lacks_end) break;
      each(text, number);
      tail.kept += text.size();
      break;
    }
    each(text.substr(0, end), number);
    text.remove_prefix(end + 1);
    tail.kept += end + 1;
  }
  return tail;
}

}  // namespace

std::string transcript_line(const Recorded& exchange) {
  const auto& [number, request, reply] = exchange;
  Json line;
  line["n"] = number;
  line["method"] = request.method;
  line["path"] = request.path;
  put_bytes(line, "request", request.body);
  if (request.repeat != 0) line["repeat"] = request.repeat;
  line["transport"] = to_text(reply.transport);
  put_bytes(line, "transport_message", reply.transport_message);
  if (reply.status != 0) line["status"] = reply.status;
  put_bytes(line, "content_type", reply.content_type);
  put_bytes(line, "retry_after", reply.retry_after);
  put_bytes(line, "retry_after_ms", reply.retry_after_ms);
  put_bytes(line, "location", reply.location);
  line["total_ms"] = reply.total_ms;
  put_bytes(line, "body", reply.body);
  return line.dump();
}

Recorded parse_transcript_line(std::string_view text, std::string_view where, int number) {
  const Json json = parse_json(text, where, number);
  const Line line(json, where, number);
  Recorded exchange;
  exchange.number = line.number<std::int64_t>("n");
  exchange.request = {line.text("method"), line.text("path"), line.bytes("request"),
                      line.number<int>("repeat")};
  if (exchange.request.method.empty() || exchange.request.path.empty()) {
    line.fail("is no exchange: it has no method or no path");
  }
  HttpReply& reply = exchange.reply;
  const std::string transport = line.text("transport");
  const auto status = std::find_if(kStatuses.begin(), kStatuses.end(), [&](TransportStatus each) {
    return to_text(each) == transport;
  });
  if (status == kStatuses.end()) line.fail(fmt::format("ends in no known way: \"{}\"", transport));
  reply.transport = *status;
  reply.transport_message = line.bytes("transport_message");
  reply.status = line.number<long>("status");
  reply.content_type = line.bytes("content_type");
  reply.retry_after = line.bytes("retry_after");
  reply.retry_after_ms = line.bytes("retry_after_ms");
  reply.location = line.bytes("location");
  reply.total_ms = line.number<double>("total_ms");
  reply.body = line.bytes("body");
  return exchange;
}

Transcript parse_transcript(std::string_view text, std::string_view where) {
  Transcript transcript;
  const Tail tail = for_lines(text, where, [&](std::string_view line, int number) {
    if (number == 1) {
      transcript.header = parse_header(line, where);
    } else {
      transcript.exchanges.push_back(parse_transcript_line(line, where, number));
    }
  });
  if (tail.kept == 0) {
    throw Error(ErrorKind::usage, fmt::format("{}: empty, no transcript", where));
  }
  transcript.notice = tail.notice;
  return transcript;
}

RecordingTransport::RecordingTransport(std::unique_ptr<Transport> inner, Files& files,
                                       std::filesystem::path path, const TranscriptHeader& header)
    : inner_(std::move(inner)), files_(files), path_(std::move(path)) {
  const std::string text = files_.exists(path_) ? files_.read(path_) : std::string();
  const std::string where = path_.string();
  const Tail tail = for_lines(text, where, [&](std::string_view line, int number) {
    if (number == 1) {
      const TranscriptHeader there = parse_header(line, where);
      if (there.arm != header.arm || there.kind != header.kind) {
        throw Error(
            ErrorKind::usage,
            fmt::format("{} is the transcript of arm {} of kind {}", where, there.arm, there.kind),
            "record into another folder");
      }
    } else {
      started_ = std::max(started_, parse_transcript_line(line, where, number).number);
    }
  });
  notice_ = tail.notice;
  if (tail.kept == 0) {
    // Nobody's first line can be torn but a transcript's own: anything else is left as it is.
    const std::string first = header_line(header) + "\n";
    if (!std::string_view(first).starts_with(text)) {
      throw Error(ErrorKind::usage, fmt::format("{} is no transcript of this arm", where),
                  "record into another folder");
    }
    files_.replace(path_, first);
  } else if (tail.lacks_end) {
    files_.append(path_, "\n");
  } else if (tail.kept < text.size()) {
    files_.replace(path_, text.substr(0, tail.kept));
  }
}

void RecordingTransport::start(const Endpoint& endpoint, HttpRequest request, Done done) {
  Recorded exchange{++started_, request, {}};
  inner_->start(endpoint, std::move(request),
                [this, key = endpoint.bearer_key, exchange = std::move(exchange),
                 done = std::move(done)](HttpReply reply) mutable {
                  redact(reply, key);
                  exchange.request.body = without_key(std::move(exchange.request.body), key);
                  exchange.reply = reply;
                  gathered_ += transcript_line(exchange) + "\n";
                  done(std::move(reply));
                });
  if (!waiting_) flush();  // of a transport that answers at once
}

void RecordingTransport::wait(std::chrono::milliseconds at_most) {
  waiting_ = true;
  try {
    inner_->wait(at_most);
  } catch (...) {
    // What came before it is evidence all the same.
    waiting_ = false;
    flush();
    throw;
  }
  waiting_ = false;
  flush();
}

void RecordingTransport::flush() {
  if (gathered_.empty()) return;
  // Handed over first: after an error the file is as it was, and trying again would not mend it.
  const std::string lines = std::exchange(gathered_, {});
  files_.append(path_, lines);
}

ReplayTransport::ReplayTransport(Transcript transcript) {
  std::stable_sort(transcript.exchanges.begin(), transcript.exchanges.end(),
                   [](const Recorded& a, const Recorded& b) { return a.number < b.number; });
  for (Recorded& exchange : transcript.exchanges) {
    HttpRequest& request = exchange.request;
    replies_[{std::move(request.method), without_v1(std::move(request.path)),
              std::move(request.body), request.repeat}]
        .push_back(std::move(exchange.reply));
  }
}

void ReplayTransport::start(const Endpoint&, HttpRequest request, Done done) {
  const std::string path = without_v1(request.path);
  auto found = replies_.find({request.method, path, request.body, request.repeat});
  if (found == replies_.end()) found = replies_.find({request.method, path, request.body, 0});
  HttpReply reply;
  if (found == replies_.end()) {
    reply.transport = TransportStatus::not_recorded;
    reply.transport_message =
        fmt::format("{} {} with this body is not in the transcript", request.method, request.path);
  } else {
    std::deque<HttpReply>& replies = found->second;
    reply = replies.front();
    if (replies.size() > 1) replies.pop_front();
  }
  open_.emplace_back(std::move(reply), std::move(done));
}

void ReplayTransport::wait(std::chrono::milliseconds) {
  if (open_.empty()) return;
  auto [reply, done] = std::move(open_.front());
  open_.pop_front();
  done(std::move(reply));
}

}  // namespace preval
