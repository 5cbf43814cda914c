#include "report/wording.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace preval {

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : std::string(kNothing);
}

std::string percent_interval(std::optional<double> low, std::optional<double> high) {
  if (!low || !high) return std::string(kNothing);
  return fmt::format("{:.1f} – {:.1f} %", 100 * *low, 100 * *high);
}

std::string points(std::optional<double> difference) {
  return difference ? fmt::format("{:+.1f}", 100 * *difference) : std::string(kNothing);
}

std::string points_interval(std::optional<double> low, std::optional<double> high) {
  if (!low || !high) return std::string(kNothing);
  return fmt::format("{:+.1f} to {:+.1f}", 100 * *low, 100 * *high);
}

std::string decimals(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : std::string(kNothing);
}

std::string of_total(std::int64_t part, std::int64_t total) {
  return fmt::format("{}/{}", grouped(part), grouped(total));
}

std::string type_title(std::string_view type) {
  return type == "noul" ? "yes/no" : std::string(type);
}

std::string subsets_of(std::int64_t n, std::int64_t of) {
  return n == of ? counted(of, "subset") : fmt::format("{} of {}", n, counted(of, "subset"));
}

std::string scope_title(const ReportAccuracy& row) {
  const std::string subsets = subsets_of(row.n_subsets, row.of_subsets);
  if (row.scope_kind == "macro") return "mean of " + subsets;
  if (row.scope == "all")
    return row.n_subsets == row.of_subsets ? "all " + subsets : "all, " + subsets;
  return type_title(row.scope) + ", " + subsets;
}

std::string list_of(const std::vector<std::string>& names) {
  if (names.size() < 2) return join(names, "");
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return join(first, ", ") + " and " + names.back();
}

std::string arm_title(const ReportArm& arm) {
  return fmt::format("{}{} on {}, {} read", arm.checkpoint_name,
                     arm.weights_dtype.empty() ? "" : " " + arm.weights_dtype, arm.backend,
                     arm.read);
}

std::string served_text(const std::string& identity) {
  if (identity.empty()) return std::string(kNothing);
  const Json facts = parse_json(identity, "stored identity");
  const Json server = facts.value("server", Json::object());
  std::vector<std::string> parts;
  const auto add = [&](const Json& from, const char* key) {
    const auto found = from.find(key);
    if (found == from.end() || !found->is_string()) return;
    const auto& text = found->get_ref<const std::string&>();
    if (!text.empty()) parts.push_back(text);
  };
  add(facts, "engine");  // the version command's word says more than the server's own
  if (parts.empty()) {
    add(server, "engine");
    add(server, "version");
  }
  add(server, "model");
  return parts.empty() ? std::string(kNothing) : join(parts, ", ");
}

std::string arm_state(const ReportArm& arm) {
  const std::string state = arm.status == "registered" ? "not run yet" : arm.status;
  return arm.reason.empty() ? state : state + ": " + arm.reason;
}

}  // namespace preval
