#pragma once
// What a row of evidence says, as a digest of its own: stored beside the row, so that a row that
// was changed afterwards can be named. The bytes that are hashed do not depend on row numbers, on
// times, on the machine or on SQLite:
//
//   NULL    n
//   integer i, decimal digits, ;
//   real    r, the 8 bytes of its IEEE 754 double, the most significant first
//   text    t, number of bytes, :, the bytes
//   blob    b, number of bytes, :, the bytes
//
// one value after the other, in the order of the functions below.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/db.h"

namespace preval {

class TypedRow {
 public:
  TypedRow& null();
  TypedRow& integer(std::int64_t value);
  TypedRow& real(double value);
  TypedRow& text(std::string_view value);
  TypedRow& blob(std::string_view bytes);
  TypedRow& integer(std::optional<std::int64_t> value) { return value ? integer(*value) : null(); }
  TypedRow& real(std::optional<double> value) { return value ? real(*value) : null(); }
  /// The value of a column, by the type that SQLite gives it.
  TypedRow& column(const Stmt& row, int column);

  const std::string& bytes() const { return bytes_; }
  std::string sha256() const;  ///< 32 bytes

 private:
  std::string bytes_;
};

/// How a row of evidence is read for its digest. Column 0 is the row's id, column 1 the digest that
/// is stored, column 2 what the row is called ("arm a, boolq, boolq-dev-7, repeat 0"), columns 3 to
/// 6 are its group (table, arm, dataset, subset), column 7 says whether it counts ("1", or "0" for
/// what was replaced), and the columns from 8 on are what is hashed. Rows come in the order of
/// their ids.
struct EvidenceQuery {
  const char *table, *select, *where, *id;

  /// With a further condition, when there is one.
  std::string sql(std::string_view condition = "1") const;
};

/// Records; answers; and failures that are the last word on a read. Labels belong to their answer:
/// option, logprob, probability and source of each follow its values, in the order of positions.
extern const EvidenceQuery kRecordEvidence, kPredictionEvidence, kFailureEvidence;

}  // namespace preval
