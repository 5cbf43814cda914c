// Whatever a server sends, a protocol ends with a result that holds or with a named failure. Built
// once per protocol (PREVAL_FUZZ_KIND); libFuzzer provides main().
//
// The input's first byte chooses what is asked (identity, tokens, a read in one of the protocol's
// modes) and the second one a question; the rest are the bodies of the replies, one after the
// other, separated by the bytes FF FE, which no valid JSON holds.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "probe_records.h"
#include "read/prompt.h"
#include "suite/record.h"

using namespace preval;

namespace {

constexpr int kMostReplies = 40;

PromptFile wording() {
  PromptFile file;
  file.name = "fuzz";
  file.opening = "Decide.";
  file.question = "{id}: {instructions}";
  file.alternative = "{label}: {name} ({description})";
  file.alternative_bare = "{label}: {name}";
  file.verdict = "{label}: {description}";
  file.verdict_bare = "{label}";
  file.closing = "One of {label_list}.";
  return file;
}

struct Subject {
  ReadMode mode;
  std::unique_ptr<Backend> backend;
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = [] {
    std::vector<Subject> made;
    for (const ReadMode mode : read_modes(PREVAL_FUZZ_KIND)) {
      BackendSpec spec;
      spec.id = "fuzz";
      spec.kind = PREVAL_FUZZ_KIND;
      spec.model = "m";
      spec.read = mode;
      spec.k = 3;
      spec.raw_probs = 3;
      spec.score_level = LevelRule::nearest;
      spec.spellings = {"{label}", " {label}"};
      Checkpoint checkpoint;
      checkpoint.chat_template = made.empty() ? Template::chat : Template::none;
      made.push_back({mode, make_backend(spec, checkpoint, {})});
    }
    return made;
  }();
  return all;
}

const std::vector<Record>& records() {
  static const std::vector<Record> all =
      read_records(embedded::probe_records, "probe", "records", [](auto&&) {});
  return all;
}

class Replies {
 public:
  Replies(std::string_view bytes, long status) : rest_(bytes), status_(status) {}
  HttpReply next() {
    HttpReply reply;
    reply.status = status_;
    const std::size_t end = rest_.find("\xFF\xFE");
    reply.body = rest_.substr(0, end);
    if (end != std::string_view::npos) rest_.remove_prefix(end + 2);
    return reply;
  }

 private:
  std::string_view rest_;
  long status_;
};

/// A result, or nothing after a failure. A failure without a class is a defect.
template <class Result>
std::optional<Result> walk(Dialogue<Result>& dialogue, Replies replies) {
  Step<Result> step = dialogue.begin();
  for (int i = 0; std::holds_alternative<HttpRequest>(step); ++i) {
    if (i == kMostReplies) return std::nullopt;  // every further reply is the same
    step = dialogue.reply(replies.next());
  }
  if (const auto* failure = std::get_if<Failure>(&step)) {
    if (failure->error_class.empty() || failure->message.empty()) std::abort();
    return std::nullopt;
  }
  return std::get<Result>(std::move(step));
}

/// What must hold of every answer that would be stored.
void check(const Answer& answer, std::size_t labels) {
  const Distribution& read = answer.distribution;
  const bool level = answer.native && answer.native->value;
  if (read.predicted < 0 || static_cast<std::size_t>(read.predicted) >= labels) std::abort();
  if (level && read.labels.empty()) return;
  if (read.labels.size() != labels || read.labels_returned < 1) std::abort();
  for (const LabelProbability& label : read.labels) {
    if (!(label.probability >= 0) || !(label.probability <= 1 + 1e-6)) std::abort();
    if (!std::isnan(label.logprob) && label.logprob > 1e-6) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  // Errors have a parser of their own. Seeds of answers have a small second byte, and so status
  // 200.
  constexpr long kStatuses[] = {200, 400, 500, 503};
  const Replies replies(std::string_view(reinterpret_cast<const char*>(data), size).substr(2),
                        kStatuses[data[1] >> 6]);
  const std::vector<Subject>& all = subjects();
  const Subject& subject = all[data[0] / 3 % all.size()];
  const Record& record = records()[(data[1] & 63) % records().size()];
  static const PromptFile file = wording();
  const Prompt prompt = prompt_form(subject.mode) == PromptForm::native
                            ? native_prompt(record, "none")
                            : render_prompt(file, record, "none", true);
  const Item item{&record, &prompt, "none", 0};
  if (data[0] % 3 == 0) {
    walk(*subject.backend->identify(), replies);
  } else if (data[0] % 3 == 1) {
    walk(*subject.backend->tokenise(item), replies);
  } else {
    TokenPrompt tokens{{1, 2, 3}, {}};
    for (std::size_t i = 0; i < prompt.labels.size(); ++i) {
      tokens.labels.push_back(static_cast<TokenId>(5 + 2 * i));
    }
    if (const auto answer = walk(*subject.backend->read(item, tokens, {}), replies)) {
      check(*answer, prompt.labels.size());
    }
  }
  return 0;
}
