#include "plan/difference.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/reader.h"

namespace preval {
namespace {

constexpr std::string_view kAbsent = "(absent)";

std::string shown(const Json& value) {
  constexpr std::size_t longest = 120;
  std::string text = canonical_json(value);
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // no torn characters
  return text.substr(0, end) + "…";
}

void compare(const std::string& pointer, const Json& registered, const Json& found,
             std::vector<PlanDrift>& drifts) {
  if (registered.is_object() && found.is_object()) {
    for (const auto& item : registered.items()) {
      const std::string field = pointer + "/" + pointer_token(item.key());
      const auto other = found.find(item.key());
      if (other == found.end()) {
        drifts.push_back({field, shown(item.value()), std::string(kAbsent)});
      } else {
        compare(field, item.value(), *other, drifts);
      }
    }
    for (const auto& item : found.items()) {
      if (registered.contains(item.key())) continue;
      drifts.push_back(
          {pointer + "/" + pointer_token(item.key()), std::string(kAbsent), shown(item.value())});
    }
  } else if (registered.is_array() && found.is_array()) {
    for (std::size_t i = 0; i < std::max(registered.size(), found.size()); ++i) {
      const std::string field = fmt::format("{}/{}", pointer, i);
      if (i >= found.size()) {
        drifts.push_back({field, shown(registered[i]), std::string(kAbsent)});
      } else if (i >= registered.size()) {
        drifts.push_back({field, std::string(kAbsent), shown(found[i])});
      } else {
        compare(field, registered[i], found[i], drifts);
      }
    }
  } else if (!same_json(registered, found)) {
    drifts.push_back({pointer, shown(registered), shown(found)});
  }
}

}  // namespace

std::vector<PlanDrift> json_differences(const Json& registered, const Json& found) {
  std::vector<PlanDrift> drifts;
  compare("", registered, found, drifts);
  return drifts;
}

bool same_json(const Json& a, const Json& b) { return canonical_json(a) == canonical_json(b); }

std::string describe(const std::vector<PlanDrift>& drifts, std::size_t limit) {
  std::string text;
  for (std::size_t i = 0; i < std::min(limit, drifts.size()); ++i) {
    if (i > 0) text += "\n";
    text += fmt::format("{}: registered {}, found {}", drifts[i].field, drifts[i].registered,
                        drifts[i].found);
  }
  if (drifts.size() > limit) text += fmt::format("\nand {} more", drifts.size() - limit);
  return text;
}

}  // namespace preval
