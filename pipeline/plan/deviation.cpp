#include "plan/deviation.h"

#include <fmt/format.h>

#include "base/error.h"
#include "plan/difference.h"
#include "plan/reader.h"

namespace preval {
namespace {

constexpr std::string_view kHint =
    "the ledger is append-only: restore it from where it was published, or from version control";

Deviation read_entry(std::string_view line, const std::string& where, int line_number) {
  Json json;
  try {
    json = parse_json(line, where, line_number);
  } catch (const Error& error) {
    // A ledger is written by preval alone, so an unreadable one was edited or torn.
    throw Error(ErrorKind::drift, error.what(), std::string(kHint));
  }
  ObjectReader in(json, fmt::format("{}, line {}", where, line_number), "", ErrorKind::drift);
  Deviation entry;
  entry.number = in.integer("number", at_least_one);
  entry.field = in.any_text("field");
  entry.from = in.value("from");
  entry.to = in.value("to");
  entry.why = in.text("why");
  entry.at = in.text("at");
  entry.previous = in.digest("previous");
  entry.sha256 = in.digest("sha256");
  in.finish();
  return entry;
}

Json& value_at(Json& plan, const Deviation& entry) {
  const std::string what = fmt::format("deviation {}: {}", entry.number, entry.field);
  std::optional<Json::json_pointer> place;
  try {
    place = find_field(plan, entry.field);
  } catch (const Json::exception&) {
    throw Error(ErrorKind::drift, what + " is not a JSON pointer", std::string(kHint));
  }
  if (!place || (!entry.from.is_null() && !plan.contains(*place))) {
    throw Error(ErrorKind::drift, what + " names nothing in the plan", std::string(kHint));
  }
  return plan[*place];
}

/// All that an entry says, but for its own digest.
Json content_of(const Deviation& entry) {
  return {{"number", entry.number},    {"field", entry.field},
          {"from", entry.from},        {"to", entry.to},
          {"why", entry.why},          {"at", entry.at},
          {"previous", entry.previous}};
}

}  // namespace

std::string entry_sha256(const Deviation& entry) { return canonical_sha256(content_of(entry)); }

std::string ledger_line(const Deviation& entry) {
  Json line = content_of(entry);
  line["sha256"] = entry.sha256;
  return line.dump() + "\n";
}

std::optional<Json::json_pointer> find_field(const Json& plan, const std::string& field) {
  const Json::json_pointer pointer(field);
  if (plan.contains(pointer)) return pointer;
  const Json::json_pointer above = pointer.parent_pointer();
  if (plan.contains(above) && plan.at(above).is_object()) return pointer;
  return std::nullopt;
}

std::vector<Deviation> parse_ledger(std::string_view text, const std::string& where,
                                    const std::string& plan_sha256) {
  std::vector<Deviation> entries;
  std::string head = plan_sha256;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    const auto fail = [&](const std::string& reason) {
      throw Error(ErrorKind::drift, fmt::format("{}, line {}: {}", where, line, reason),
                  std::string(kHint));
    };
    if (end == std::string_view::npos) fail("the last line is torn: it has no line feed");
    Deviation entry = read_entry(text.substr(0, end), where, line);
    text.remove_prefix(end + 1);
    if (entry.number != line) fail(fmt::format("entry {} where {} is due", entry.number, line));
    if (entry.previous != head) {
      fail(fmt::format("\"previous\" is {}, expected {}: {}", entry.previous, head,
                       line == 1 ? "the ledger belongs to another plan"
                                 : "an entry before it was changed, removed or added"));
    }
    const std::string found = entry_sha256(entry);
    if (entry.sha256 != found) {
      fail(fmt::format("the entry was changed: it says sha256 {}, its content has {}", entry.sha256,
                       found));
    }
    head = entry.sha256;
    entries.push_back(std::move(entry));
  }
  return entries;
}

Json apply_deviations(const Json& plan, const std::vector<Deviation>& deviations) {
  Json effective = plan;
  for (const Deviation& entry : deviations) {
    Json& value = value_at(effective, entry);
    if (!same_json(value, entry.from)) {
      throw Error(ErrorKind::drift,
                  fmt::format("deviation {}: {} is {}, the entry says it was {}", entry.number,
                              entry.field, canonical_json(value), canonical_json(entry.from)),
                  std::string(kHint));
    }
    value = entry.to;
  }
  return effective;
}

}  // namespace preval
