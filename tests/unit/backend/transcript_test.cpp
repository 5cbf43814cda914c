#include "backend/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "../base/temporary_folder.h"
#include "../base/thrown.h"
#include "../plan/memory_files.h"
#include "backend/backend.h"
#include "backend/redact.h"
#include "catch.h"

using namespace preval;
using namespace preval::test;
using std::chrono::milliseconds;

namespace {

constexpr char kHeader[] = "{\"preval_transcript\":1,\"arm\":\"a\",\"kind\":\"vllm\"}\n";

/// Gives what it is told to give, last started first, to show that order is kept by number.
class StackTransport final : public Transport {
 public:
  explicit StackTransport(std::deque<HttpReply> replies) : replies_(std::move(replies)) {}
  void start(const Endpoint&, HttpRequest, Done done) override {
    open_.emplace_back(std::move(replies_.front()), std::move(done));
    replies_.pop_front();
  }
  void wait(milliseconds) override {
    if (open_.empty()) return;
    auto [reply, done] = std::move(open_.back());
    open_.pop_back();
    done(std::move(reply));
  }
  std::size_t in_flight() const override { return open_.size(); }

 private:
  std::deque<HttpReply> replies_;
  std::deque<std::pair<HttpReply, Done>> open_;
};

HttpReply reply_of(std::string body, double ms = 1.25) {
  HttpReply reply;
  reply.status = 200;
  reply.body = std::move(body);
  reply.content_type = "application/json";
  reply.total_ms = ms;
  return reply;
}

/// Files that cannot grow while the disk is full.
struct FullDisk final : MemoryFiles {
  bool full = false;
  void append(const std::filesystem::path& path, std::string_view text) override {
    if (full) throw Error(ErrorKind::io, path.string() + ": No space left on device");
    MemoryFiles::append(path, text);
  }
};

/// Bodies of the replies to one request, asked `times` times.
std::vector<std::string> asked(Transport& transport, const HttpRequest& request, int times) {
  std::vector<std::string> bodies;
  for (int i = 0; i < times; ++i) bodies.push_back(exchange(transport, {}, request).body);
  return bodies;
}

std::string refusal(const std::string& text) {
  const Error error = thrown([&] { parse_transcript(text, "t.jsonl"); });
  CHECK(error.kind() == ErrorKind::usage);
  return error.what();
}

}  // namespace

TEST_CASE("an exchange survives its line, whatever its bytes") {
  Recorded whole;
  whole.number = 7;
  whole.request = {"POST", "/v1/completions", "{\"prompt\":[1,2]}", 3};
  whole.reply =
      reply_of(GENERATE(std::string("{\"p\":\"\xE2\x80\xA8 ü\\n\"}"), std::string("\xFF\xFE\0x", 4),
                        std::string("\xFF"), std::string("\xFF\xFF"), std::string()),
               0.1 + 0.2);
  whole.reply.status = 429;
  whole.reply.retry_after = "7";
  whole.reply.retry_after_ms = "1500";
  whole.reply.location = "http://elsewhere/x";
  whole.reply.transport = GENERATE(TransportStatus::ok, TransportStatus::partial_body);
  whole.reply.transport_message = "the connection ended";
  const std::string line = transcript_line(whole);
  CHECK(line.find('\n') == std::string::npos);
  const Recorded back = parse_transcript_line(line, "t.jsonl", 2);
  CHECK(back.number == 7);
  CHECK(back.request.method == "POST");
  CHECK(back.request.path == "/v1/completions");
  CHECK(back.request.body == whole.request.body);
  CHECK(back.request.repeat == 3);
  CHECK(back.reply.body == whole.reply.body);
  CHECK(back.reply.transport == whole.reply.transport);
  CHECK(back.reply.transport_message == "the connection ended");
  CHECK(back.reply.status == 429);
  CHECK(back.reply.content_type == "application/json");
  CHECK(back.reply.retry_after == "7");
  CHECK(back.reply.retry_after_ms == "1500");
  CHECK(back.reply.location == "http://elsewhere/x");
  CHECK(back.reply.total_ms == 0.1 + 0.2);
}

TEST_CASE("a line of a transcript, as it is documented") {
  Recorded exchange;
  exchange.number = 1;
  exchange.request = {"GET", "/version", ""};
  exchange.reply = reply_of("{}", 2.5);
  CHECK(transcript_line(exchange) ==
        R"({"n":1,"method":"GET","path":"/version","transport":"ok","status":200,)"
        R"("content_type":"application/json","total_ms":2.5,"body":"{}"})");
  exchange.reply.body = "\xFF";
  CHECK(contains(transcript_line(exchange), R"("body_base64":"/w==")"));
}

TEST_CASE("what is no transcript is refused by line") {
  const std::string line = R"({"n":1,"method":"GET","path":"/p","transport":"ok","total_ms":1})";
  CHECK(parse_transcript(kHeader + line + "\n", "t.jsonl").exchanges.size() == 1);
  CHECK(contains(refusal(""), "t.jsonl: empty"));
  CHECK(contains(refusal("{}\n"), "line 1 is not the first line of a transcript"));
  CHECK(contains(refusal("{\"preval_transcript\":2}\n"), "line 1 says version 2"));
  CHECK(contains(refusal(kHeader + line.substr(0, 20) + "\n"), "t.jsonl, line 2, column"));
  CHECK(contains(refusal(std::string(kHeader) + "[]\n"), "line 2 is no object"));
  CHECK(contains(refusal(std::string(kHeader) + "{\"method\":\"GET\"}\n"), "no method or no path"));
  CHECK(contains(
      refusal(std::string(kHeader) + R"({"method":"GET","path":"/p","transport":"so"})" + "\n"),
      "ends in no known way: \"so\""));
  CHECK(contains(refusal(std::string(kHeader) + R"({"method":1,"path":"/p"})" + "\n"),
                 "has no text as \"method\""));
  CHECK(contains(refusal(std::string(kHeader) +
                         R"({"method":"G","path":"/p","transport":"ok","body_base64":"*"})" + "\n"),
                 "has no base64"));
}

TEST_CASE("what was recorded is replayed byte for byte, in the order in which it was asked for") {
  const TemporaryFolder folder;
  SystemFiles files;
  const auto path = folder.path() / "a.transcript.jsonl";
  const HttpRequest read{"POST", "/v1/completions", "{\"prompt\":[1]}"};
  {
    RecordingTransport recording(
        std::make_unique<StackTransport>(std::deque<HttpReply>{
            reply_of("first", 0.1), reply_of("second", 0.7), reply_of("\xFFother", 3)}),
        files, path, {"a", "vllm"});
    std::vector<std::string> came;
    const auto keep = [&](HttpReply reply) { came.push_back(std::move(reply.body)); };
    recording.start({}, read, keep);
    recording.start({}, read, keep);
    recording.start({}, {"GET", "/v1/models", ""}, keep);
    CHECK(recording.in_flight() == 3);
    while (recording.in_flight() > 0) recording.wait(milliseconds(1));
    CHECK(came == std::vector<std::string>{"\xFFother", "second", "first"});
  }
  const std::string text = files.read(path);
  CHECK(text.rfind(kHeader, 0) == 0);
  for (int time = 0; time < 2; ++time) {
    ReplayTransport replay(parse_transcript(text, "t"));
    // Asked more often than it was recorded, the last reply stands.
    CHECK(asked(replay, read, 3) == std::vector<std::string>{"first", "second", "second"});
    CHECK(exchange(replay, {}, {"GET", "/v1/models", ""}).total_ms == 3);
  }
  // An address that ends in /v1 is asked for other paths.
  ReplayTransport replay(parse_transcript(text, "t"));
  CHECK(exchange(replay, {}, {"GET", "/models", ""}).body == "\xFFother");
}

TEST_CASE("equal questions of several repeats get each its own replies, in any order") {
  const auto asked_for = [](int repeat) {
    return HttpRequest{"POST", "/v1/completions", "{\"prompt\":[1]}", repeat};
  };
  Transcript transcript;
  transcript.exchanges = {{1, asked_for(0), reply_of("refused", 1)},
                          {2, asked_for(0), reply_of("first", 1)},
                          {3, asked_for(1), reply_of("second", 1)}};
  ReplayTransport replay(transcript);
  CHECK(exchange(replay, {}, asked_for(0)).body == "refused");
  CHECK(exchange(replay, {}, asked_for(1)).body == "second");
  CHECK(exchange(replay, {}, asked_for(0)).body == "first");
  // One more repeat than was recorded is answered as the first one.
  CHECK(exchange(replay, {}, asked_for(2)).body == "first");
}

TEST_CASE("a request that nobody has recorded is a final failure of its own class") {
  ReplayTransport replay(parse_transcript(kHeader, "t"));
  const HttpReply reply = exchange(replay, {}, {"POST", "/generate", "{}"});
  CHECK(reply.transport == TransportStatus::not_recorded);
  const auto failure = transport_failure(reply);
  REQUIRE(failure.has_value());
  CHECK(failure->error_class == "not_recorded");
  CHECK(failure->message == "POST /generate with this body is not in the transcript");
  CHECK_FALSE(failure->retry);
  CHECK_FALSE(failure->server);
}

TEST_CASE("a transcript is gone on with, by the same arm only") {
  const TemporaryFolder folder;
  SystemFiles files;
  const auto path = folder.path() / "t.jsonl";
  const auto record = [&](const TranscriptHeader& header, const std::string& body) {
    RecordingTransport recording(
        std::make_unique<StackTransport>(std::deque<HttpReply>{reply_of(body)}), files, path,
        header);
    exchange(recording, {}, {"GET", "/p", ""});
  };
  record({"a", "vllm"}, "one");
  record({"a", "vllm"}, "two");
  ReplayTransport replay(parse_transcript(files.read(path), "t"));
  CHECK(asked(replay, {"GET", "/p", ""}, 2) == std::vector<std::string>{"one", "two"});
  const Error error = thrown([&] { record({"b", "vllm"}, "three"); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "is the transcript of arm a of kind vllm"));
}

TEST_CASE("E10: a transcript that ends anywhere is read to its last whole line, and says so") {
  const HttpRequest read{"POST", "/p", "{\"prompt\":[1]}"};
  std::string text = kHeader;
  std::vector<std::size_t> ends{text.size()};  // of the lines
  for (int n = 1; n <= 3; ++n) {
    text += transcript_line({n, read, reply_of(fmt::format("\xC3\xBC {}", n))}) + "\n";
    ends.push_back(text.size());
  }
  for (std::size_t size = 0; size <= text.size(); ++size) {
    INFO("of " << text.size() << " bytes " << size);
    const std::string part = text.substr(0, size);
    // The lines that are whole; a line feed alone may be missing.
    const auto whole =
        std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= size + 1; });
    const bool at_end = size == 0 || part.back() == '\n';
    const bool only_feed = !at_end && text[size] == '\n';
    if (whole == 0) {
      thrown([&] { parse_transcript(part, "t.jsonl"); });
    } else {
      const Transcript transcript = parse_transcript(part, "t.jsonl");
      CHECK(transcript.exchanges.size() == static_cast<std::size_t>(whole) - 1);
      CHECK(transcript.notice.empty() == at_end);
      CHECK(contains(transcript.notice, only_feed ? "whole and was kept" : "left out") == !at_end);
      const auto line = static_cast<int>(std::count(part.begin(), part.end(), '\n')) + 1;
      if (!at_end) CHECK(contains(transcript.notice, fmt::format("the last line, {},", line)));
    }

    // Recording goes on behind the whole lines.
    MemoryFiles files;
    files.content["t.jsonl"] = part;
    {
      RecordingTransport recording(
          std::make_unique<StackTransport>(std::deque<HttpReply>{reply_of("next")}), files,
          "t.jsonl", {"a", "vllm"});
      CHECK(recording.notice().empty() == at_end);
      exchange(recording, {}, read);
    }
    const auto kept = static_cast<std::size_t>(std::max<std::ptrdiff_t>(whole, 1));
    Recorded next{static_cast<std::int64_t>(kept), read, reply_of("next")};
    CHECK(files.content["t.jsonl"] ==
          text.substr(0, ends[kept - 1]) + transcript_line(next) + "\n");
  }
}

TEST_CASE("E10: a broken line that is not the last torn one is fatal with its number") {
  const std::string line = transcript_line({1, {"GET", "/p", ""}, reply_of("x")});
  for (const std::string& broken : {kHeader + line.substr(0, 9) + "\n" + line + "\n",
                                    kHeader + line.substr(0, 9) + "\n" + line.substr(0, 9),
                                    kHeader + line.substr(0, 9) + "\n"}) {
    CHECK(contains(refusal(broken), "t.jsonl, line 2"));
    MemoryFiles files;
    files.content["t.jsonl"] = broken;
    const Error error = thrown([&] {
      RecordingTransport(std::make_unique<StackTransport>(std::deque<HttpReply>{}), files,
                         "t.jsonl", {"a", "vllm"});
    });
    CHECK(contains(error.what(), "t.jsonl, line 2"));
    CHECK(files.content["t.jsonl"] == broken);
  }
  // A file of somebody else is no torn transcript.
  MemoryFiles files;
  files.content["t.jsonl"] = "notes";
  const Error error = thrown([&] {
    RecordingTransport(std::make_unique<StackTransport>(std::deque<HttpReply>{}), files, "t.jsonl",
                       {"a", "vllm"});
  });
  CHECK(contains(error.what(), "t.jsonl is no transcript of this arm"));
  CHECK(files.content["t.jsonl"] == "notes");
}

TEST_CASE("every exchange is written when it ends, and what cannot be written is heard at once") {
  FullDisk files;
  const HttpRequest read{"POST", "/p", ""};
  RecordingTransport recording(std::make_unique<StackTransport>(std::deque<HttpReply>{
                                   reply_of("1"), reply_of("2"), reply_of("3"), reply_of("4")}),
                               files, "t.jsonl", {"a", "vllm"});
  const auto lines = [&] {
    return std::count(files.content["t.jsonl"].begin(), files.content["t.jsonl"].end(), '\n');
  };
  CHECK(lines() == 1);
  exchange(recording, {}, read);
  CHECK(lines() == 2);
  exchange(recording, {}, read);
  CHECK(lines() == 3);
  files.full = true;
  const Error error = thrown([&] { exchange(recording, {}, read); });
  CHECK(error.kind() == ErrorKind::io);
  CHECK(contains(error.what(), "No space left"));
  CHECK(lines() == 3);
  files.full = false;
  exchange(recording, {}, read);
  CHECK(lines() == 4);
  CHECK(parse_transcript(files.content["t.jsonl"], "t").exchanges.size() == 3);
}

TEST_CASE("what ended before an error of the transport or of a listener is written") {
  MemoryFiles files;
  RecordingTransport recording(
      std::make_unique<StackTransport>(std::deque<HttpReply>{reply_of("1")}), files, "t.jsonl",
      {"a", "vllm"});
  recording.start({}, {"GET", "/p", ""}, [](HttpReply) { throw Error(ErrorKind::io, "no store"); });
  CHECK(contains(thrown([&] { recording.wait(milliseconds(1)); }).what(), "no store"));
  CHECK(parse_transcript(files.content["t.jsonl"], "t").exchanges.size() == 1);
}

TEST_CASE("a transport that answers at once is written down, too") {
  MemoryFiles files;
  /// Without a network there may be nothing to wait for.
  struct AtOnce final : Transport {
    void start(const Endpoint&, HttpRequest, Done done) override { done(reply_of("x")); }
    void wait(milliseconds) override {}
    std::size_t in_flight() const override { return 0; }
  };
  RecordingTransport recording(std::make_unique<AtOnce>(), files, "t.jsonl", {"a", "vllm"});
  recording.start({}, {"GET", "/p", ""}, [](HttpReply) {});
  CHECK(parse_transcript(files.content["t.jsonl"], "t").exchanges.size() == 1);
}

TEST_CASE("keys are not written down, wherever they stand") {
  const TemporaryFolder folder;
  SystemFiles files;
  const auto path = folder.path() / "t.jsonl";
  HttpReply reply = reply_of("{\"error\":\"wrong key sk-12/34\\\"56, sk-12\\/34\\\"56\"}");
  reply.retry_after = "sk-12/34\"56";
  Endpoint endpoint;
  endpoint.bearer_key = "sk-12/34\"56";
  RecordingTransport recording(std::make_unique<StackTransport>(std::deque<HttpReply>{reply}),
                               files, path, {"a", "vllm"});
  const HttpReply seen =
      exchange(recording, endpoint, {"POST", "/p", "{\"k\":\"sk-12/34\\\"56\"}"});
  CHECK(seen.body == "{\"error\":\"wrong key [key removed], [key removed]\"}");
  CHECK(seen.retry_after == "[key removed]");
  CHECK_FALSE(contains(files.read(path), "sk-12"));
}

TEST_CASE("what is shorter than any key is left in") {
  CHECK(without_key("{\"token\":1}", "token") == "{\"token\":1}");
  CHECK(without_key("a 12345678 b", "12345678") == "a [key removed] b");
  CHECK(without_key("anything", "") == "anything");
  // However a server writes it: escaped as one encoder or another does, or as part of an address.
  const std::string key = "sk-PLANTED/0+a=\"";
  for (const char* written :
       {R"(sk-PLANTED/0+a=")", R"(sk-PLANTED\/0+a=\")",
        R"(sk\u002dPLANTED\u002F0\u002ba\u003d\u0022)", R"(sk-PLANTED%2F0%2Ba%3D%22)",
        R"(\u0073\u006b\u002dPLANTED/0+a=%22)"}) {
    INFO(written);
    CHECK(without_key(fmt::format("bad {} and {}.", written, written), key) ==
          "bad [key removed] and [key removed].");
  }
  for (const char* other :
       {"sk-PLANTED/0+a=", "sk-planted/0+a=\"", "sk\\u002ePLANTED/0+a=\"", "%", "\\"}) {
    CHECK(without_key(other, key) == other);
  }
}
