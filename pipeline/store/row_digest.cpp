#include "store/row_digest.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <bit>
#include <iterator>

#include "base/sha256.h"
#include "store/bytes.h"

namespace preval {

TypedRow& TypedRow::null() {
  bytes_ += 'n';
  return *this;
}

TypedRow& TypedRow::integer(std::int64_t value) {
  fmt::format_to(std::back_inserter(bytes_), "i{};", value);
  return *this;
}

TypedRow& TypedRow::real(double value) {
  // SQLite gives a negative zero back as zero.
  const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
  bytes_ += 'r';
  for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  return *this;
}

TypedRow& TypedRow::text(std::string_view value) {
  fmt::format_to(std::back_inserter(bytes_), "t{}:{}", value.size(), value);
  return *this;
}

TypedRow& TypedRow::blob(std::string_view bytes) {
  fmt::format_to(std::back_inserter(bytes_), "b{}:", bytes.size());
  bytes_ += bytes;
  return *this;
}

TypedRow& TypedRow::column(const Stmt& row, int column) {
  switch (row.column_type(column)) {
    case SQLITE_NULL:
      return null();
    case SQLITE_INTEGER:
      return integer(row.integer(column));
    case SQLITE_FLOAT:
      return real(row.real(column));
    case SQLITE_BLOB:
      return blob(row.blob(column));
    default:
      return text(row.text(column));
  }
}

std::string EvidenceQuery::sql(std::string_view condition) const {
  return fmt::format("{} WHERE {} AND {} ORDER BY {}", select, where, condition, id);
}

std::string TypedRow::sha256() const { return bytes_of_hex(sha256_hex(bytes_)); }

const EvidenceQuery kRecordEvidence{
    "record",
    "SELECT r.id, r.row_sha256, s.name || ', ' || r.record_id, 'record', '', s.dataset, s.name, "
    "r.current, r.record_id, r.sha256, r.position, r.family, o.sha256, r.target "
    "FROM record r JOIN subset s ON s.id = r.subset_id JOIN option_set o ON o.id = r.set_id",
    "1", "r.id"};

const EvidenceQuery kPredictionEvidence{
    "prediction",
    "SELECT p.id, p.row_sha256, 'arm ' || a.name || ', ' || s.name || ', ' || r.record_id || "
    "iif(q.variant = 'none', '', ', ' || q.variant) || ', repeat ' || p.repeat, 'prediction', "
    "a.name, s.dataset, s.name, c.current AND q.current AND r.current, a.name, c.sha256, "
    "r.record_id, r.sha256, q.variant, q.sha256, p.repeat, p.exploratory, p.predicted, p.tied, "
    "p.tied_at_bound, p.label_mass, p.entropy, p.argmax_is_label, p.labels_returned, p.floor, "
    "p.bound, p.prompt_tokens, p.requests, p.printed_sum, p.sum_is_off, p.choice_differs, p.value "
    "FROM prediction p JOIN configuration c ON c.id = p.configuration_id JOIN arm a ON a.id = "
    "c.arm_id JOIN prompt q ON q.id = p.prompt_id JOIN record r ON r.id = q.record_id JOIN subset "
    "s "
    "ON s.id = r.subset_id",
    "1", "p.id"};

const EvidenceQuery kFailureEvidence{
    "failure",
    "SELECT f.id, f.row_sha256, 'arm ' || a.name || ', ' || s.name || ', ' || r.record_id || "
    "iif(q.variant = 'none', '', ', ' || q.variant) || ', repeat ' || f.repeat, 'failure', a.name, "
    "s.dataset, s.name, c.current AND q.current AND r.current, a.name, c.sha256, r.record_id, "
    "r.sha256, q.variant, q.sha256, f.repeat, u.exploratory, f.class, f.http_status "
    "FROM failure f JOIN run u ON u.id = f.run_id JOIN configuration c ON c.id = "
    "f.configuration_id JOIN arm a ON a.id = c.arm_id JOIN prompt q ON q.id = f.prompt_id JOIN "
    "record r ON r.id = q.record_id JOIN subset s ON s.id = r.subset_id",
    "f.final = 1 AND f.id = (SELECT max(g.id) FROM failure g JOIN run v ON v.id = g.run_id WHERE "
    "g.configuration_id = "
    "f.configuration_id AND g.prompt_id = f.prompt_id AND g.repeat = f.repeat AND g.final = 1 AND "
    "v.exploratory = u.exploratory) AND NOT EXISTS (SELECT 1 FROM prediction p WHERE "
    "p.configuration_id = f.configuration_id AND p.prompt_id = f.prompt_id AND p.repeat = f.repeat "
    "AND p.exploratory = u.exploratory)",
    "f.id"};

}  // namespace preval
