#pragma once
// Records: one question each, one JSON object per line. A line ends at byte 0x0A and nowhere else:
// U+2028, U+0085 and form feeds are ordinary characters inside strings.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

namespace preval {

/// Labels are yes and no, digits, or the letters A to Z: more alternatives cannot be read by token.
inline constexpr std::size_t kMostTokenLabels = 26;

/// What a decision is asked about. `alternatives` holds option names (choice), level texts (score)
/// or the two criteria texts (noul, yes first).
struct Question {
  std::string id;  ///< "decision" in the public suite
  QuestionType type = QuestionType::noul;
  std::string instructions;  ///< a string as it is, anything else as Python JSON
  struct Alternative {
    std::string key;   ///< stored key: true | false, option name, "0" … "N-1"
    std::string text;  ///< description or level text; may be empty
  };
  std::vector<Alternative>
      alternatives;  ///< noul: true, false; choice: insertion order; score: lowest first
};

struct Record {
  std::string id, subset, family;
  int line = 0;        ///< 1-based line of its file
  std::string sha256;  ///< of the line's bytes without the line feed
  Question question;
  Json state;      ///< input.state
  Json input;      ///< input as it stands, for native reads
  int target = 0;  ///< index into question.alternatives
};

/// A native read takes what its server takes; a read by token has a letter for 26 alternatives
/// only.
inline bool is_too_wide(const Record& record) {
  return record.question.alternatives.size() > kMostTokenLabels;
}

/// How many records of a subset cannot be read by token, and how wide the widest is.
struct TooWide {
  int records = 0;
  std::size_t most = 0;  ///< alternatives of the widest; 0 when there is none
  std::string first;     ///< the first of them: "record r-7, question decision"
  void count(const Record& record) {
    if (!is_too_wide(record)) return;
    if (records == 0) first = "record " + record.id + ", question " + record.question.id;
    ++records;
    most = std::max(most, record.question.alternatives.size());
  }
};
/// "2 questions have up to 40 options, reads by token take at most 26".
std::string in_words(const TooWide& too_wide);

/// Reads the records of one file, one by one and in file order. Throws usage errors that name file,
/// line and record id: invalid UTF-8, duplicate keys, duplicate ids (both lines), wrong types, more
/// or fewer questions than one, fewer than 2 or more than 255 alternatives, a target that is no
/// alternative, a torn last line. A byte order mark, and a last line that is whole but has no line
/// feed, are accepted and reported through `warn`: the file's digest still decides whether it is
/// the right file.
class RecordReader {
 public:
  using Warn = std::function<void(const std::string&)>;
  /// `bytes` must outlive the reader.
  RecordReader(std::string_view bytes, std::string subset, std::string where, Warn warn);
  ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  /// The next record, or nothing behind the last one.
  std::optional<Record> next();
  /// Records and distinct families so far; after an error, those before it.
  int records() const;
  int families() const;
  /// The line read last, 1-based.
  int line() const { return line_; }

 private:
  struct Seen;
  std::string_view rest_;
  std::string subset_, where_;
  Warn warn_;
  int line_ = 0;
  std::unique_ptr<Seen> seen_;
};

/// All records of a file.
std::vector<Record> read_records(std::string_view bytes, const std::string& subset,
                                 const std::string& where,
                                 const std::function<void(const std::string&)>& warn);

/// A file whose every line feed follows a carriage return.
bool has_crlf_line_ends(std::string_view bytes);

}  // namespace preval
