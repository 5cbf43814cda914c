#pragma once
// A run's exchanges as a file, so that a measurement can be read again without its server: by
// somebody who has no such machine, or after a protocol's parser has changed. A transcript stands
// below the protocols: what was asked and what came back, byte for byte, less the bearer key.
//
// Format: lines of JSON that end at byte 0x0A. The first is
//   {"preval_transcript":1,"arm":"a","kind":"vllm"}
// Every other line is one exchange:
//   n                  counts exchanges from 1, in the order in which they were started
//   method, path, request
//   repeat             which of several equal questions it was asked for, from 0
//   transport          "ok", or why there is no whole reply; transport_message says so in words
//   status, content_type, retry_after, retry_after_ms, location     as received
//   total_ms           request sent → last byte
//   body               or body_base64, when it is no UTF-8; request_base64 likewise
// What is empty or 0 is left out, total_ms excepted. Lines stand in the order in which the
// exchanges ended. A run that goes on where an earlier one stopped goes on in its transcript, too.
// The last line of a run that was killed may be torn: it is cut off, or kept where only its line
// end is missing, and whoever reads the file says so. A broken line before it is an error. A "/v1"
// at the start of a path counts for nothing when a request is looked up: it may have been part of
// the server's address.
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "backend/transport.h"
#include "base/file.h"

namespace preval {

inline constexpr int kTranscriptVersion = 1;

/// What a transcript says about itself in its first line.
struct TranscriptHeader {
  std::string arm, kind;
};

/// One exchange of a transcript.
struct Recorded {
  std::int64_t number = 0;
  HttpRequest request;
  HttpReply reply;
};

/// The exchange as a line, without its end. Throws nothing for any bytes.
std::string transcript_line(const Recorded& exchange);
/// Throws usage errors that begin with `where` and name the line.
Recorded parse_transcript_line(std::string_view line, std::string_view where, int number);

struct Transcript {
  TranscriptHeader header;
  std::vector<Recorded> exchanges;  ///< in the order of the file
  std::string notice;  ///< what became of a last line without an end; empty: there was none
};

/// Throws usage errors for a version that is not known and for a line that is none: they name the
/// line. A torn last line is left out, with a notice.
Transcript parse_transcript(std::string_view text, std::string_view where);

/// Writes down what goes through another transport. What is written is what is handed on: nothing
/// is kept of exchanges that never ended. Every exchange is on the disk, as a whole line, when the
/// call of wait() (or start()) that ended it returns, and an exchange that cannot be written down
/// is an io error of that call.
class RecordingTransport final : public Transport {
 public:
  /// Goes on in `path` when it is there, behind its last whole line; throws usage when that is the
  /// transcript of another arm or kind, or none.
  RecordingTransport(std::unique_ptr<Transport> inner, Files& files, std::filesystem::path path,
                     const TranscriptHeader& header);

  void start(const Endpoint& endpoint, HttpRequest request, Done done) override;
  void wait(std::chrono::milliseconds at_most) override;
  std::size_t in_flight() const override { return inner_->in_flight(); }

  /// What became of the last line of a run that was stopped while it wrote; empty: nothing.
  const std::string& notice() const { return notice_; }
  /// Writes what has gathered: between calls of this object that is nothing.
  void flush();

 private:
  std::unique_ptr<Transport> inner_;
  Files& files_;
  std::filesystem::path path_;
  std::string gathered_, notice_;
  bool waiting_ = false;  // the other transport is at work: no error may pass through it
  std::int64_t started_ = 0;
};

/// Answers from a transcript. The same request, asked again for the same repeat, gets the replies
/// in the order in which they were asked for (for a repeat that was not recorded, those of repeat
/// 0); asked more often than it was recorded, it gets the last one again. A request that is not in
/// the transcript fails with TransportStatus::not_recorded.
class ReplayTransport final : public Transport {
 public:
  explicit ReplayTransport(Transcript transcript);

  void start(const Endpoint& endpoint, HttpRequest request, Done done) override;
  void wait(std::chrono::milliseconds at_most) override;
  std::size_t in_flight() const override { return open_.size(); }

 private:
  using Key = std::tuple<std::string, std::string, std::string, int>;  // method, path, body, repeat

  std::map<Key, std::deque<HttpReply>> replies_;
  std::deque<std::pair<HttpReply, Done>> open_;
};

}  // namespace preval
