#include "plan/deviate.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace preval {
namespace {

Error refused(const std::string& what, const std::string& hint) {
  return Error(ErrorKind::usage, what, hint);
}

void check_plan(const OpenPlan& plan) {
  if (!plan.lock) {
    throw refused(fmt::format("{} is not locked: nothing is registered that could be deviated from",
                              plan.path.string()),
                  fmt::format("edit it, then: preval lock {}", plan.path.string()));
  }
  const std::vector<PlanDrift> drifts = json_differences(plan.lock->plan, plan.json);
  if (drifts.empty()) return;
  throw Error(
      ErrorKind::drift,
      fmt::format("{} changed since it was locked:\n{}", plan.path.string(), describe(drifts)),
      "undo the change to the file; the ledger is where a difference is written down");
}

/// A plan is known by these: another name is another plan.
void check_field(const std::string& field) {
  const std::string whole = field.substr(0, field.find('/', 1));
  if (field.empty() || field.front() != '/') {
    throw refused(fmt::format("\"{}\" is no JSON pointer to a field", field),
                  "for example /backends/0/read");
  }
  if (whole == "/name" || whole == "/preval_plan" || whole == "/version" || whole == "/authors") {
    throw refused(fmt::format("{} says which plan this is and cannot deviate", whole),
                  "another plan gets a file of its own");
  }
}

/// The value at a field now; null where an object lacks it.
Json value_now(const Json& plan, const std::string& field) {
  try {
    if (const auto place = find_field(plan, field)) {
      return plan.contains(*place) ? plan.at(*place) : Json();
    }
  } catch (const Json::exception&) {
    throw refused(fmt::format("\"{}\" is no JSON pointer", field), "for example /backends/0/read");
  }
  throw refused(fmt::format("{} names nothing in the plan", field),
                "elements of arrays are counted from 0: /arms/0/boot_limit_s");
}

/// A key that is not there, although the call gives it a value: what it was meant to be, if that
/// can be told.
std::string misspelt(const Json& plan, const Change& change) {
  const Json::json_pointer place(change.field);
  if (change.from.is_null() || plan.contains(place)) return {};
  const Json& object = plan.at(place.parent_pointer());
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  const std::string meant = did_you_mean(place.back(), keys);
  return meant.empty() ? " (with the value null)" : meant;
}

void check_change(const Json& effective, const Change& change) {
  check_field(change.field);
  const Json now = value_now(effective, change.field);
  if (const std::string meant = misspelt(effective, change); !meant.empty()) {
    throw refused(fmt::format("the plan has no {}{}", change.field, meant),
                  "an optional key that is not there yet is --from null");
  }
  if (!same_json(now, change.from)) {
    throw refused(fmt::format("{} is {} now, not {}", change.field, canonical_json(now),
                              canonical_json(change.from)),
                  "--from has to be the value that is registered now");
  }
  if (same_json(change.from, change.to)) {
    throw refused(fmt::format("{} is {} already", change.field, canonical_json(change.to)),
                  "a deviation changes something");
  }
}

}  // namespace

std::vector<Deviation> deviate(Files& files, Clock& clock, const OpenPlan& plan,
                               const std::vector<Change>& changes, const std::string& why,
                               const std::function<void(const OpenPlan&)>& accept) {
  check_plan(plan);
  if (why.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw refused("a deviation needs a reason", "--why TEXT");
  }
  if (const auto bad = invalid_utf8(why)) {
    throw refused(fmt::format("the reason is not valid UTF-8 at byte {}", *bad), "--why TEXT");
  }
  const std::string at = utc_text(clock.now());
  std::string previous = plan.ledger_head.empty() ? plan.lock->plan_sha256 : plan.ledger_head;
  Json effective = plan.effective_json;
  std::vector<Deviation> entries;
  for (const Change& change : changes) {
    check_change(effective, change);
    Deviation entry;
    entry.number = static_cast<int>(plan.deviations.size() + entries.size()) + 1;
    entry.field = change.field;
    entry.from = change.from;
    entry.to = change.to;
    entry.why = why;
    entry.at = at;
    entry.previous = previous;
    entry.sha256 = previous = entry_sha256(entry);
    effective = apply_deviations(effective, {entry});
    entries.push_back(std::move(entry));
  }
  OpenPlan deviated = plan;
  deviated.effective =
      parse_plan(effective, fmt::format("{} with this deviation", plan.path.string()));
  deviated.effective_json = std::move(effective);
  if (accept) accept(deviated);

  const std::filesystem::path ledger = ledger_path(plan.path);
  std::string text = files.exists(ledger) ? files.read(ledger) : std::string();
  for (const Deviation& entry : entries) text += ledger_line(entry);
  files.replace(ledger, text);
  return entries;
}

}  // namespace preval
