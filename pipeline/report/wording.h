#pragma once
// How numbers and names read in a report: one place, so that every section says them alike.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model.h"

namespace preval {

inline constexpr std::string_view kNothing = "–";  ///< stands for a value that is not defined

/// "41.7 %", or "–".
std::string percent(std::optional<double> share);
/// "19.3 – 68.0 %", or "–".
std::string percent_interval(std::optional<double> low, std::optional<double> high);
/// "+8.8" and "-1.2": percentage points.
std::string points(std::optional<double> difference);
/// "+6.8 to +10.8", or "–".
std::string points_interval(std::optional<double> low, std::optional<double> high);
/// "0.163", or "–".
std::string decimals(std::optional<double> value, int digits = 3);
/// "12/12"
std::string of_total(std::int64_t part, std::int64_t total);
/// "yes/no", "choice", "score"
std::string type_title(std::string_view type);
/// "all 13 subsets", "yes/no, 2 of 5 subsets", "mean of 13 subsets"
std::string scope_title(const ReportAccuracy& row);
/// "6 of 13 subsets" when some are missing, else "13 subsets"
std::string subsets_of(std::int64_t n, std::int64_t of);
/// "a, b and c"
std::string list_of(const std::vector<std::string>& names);
/// "SmolLM2-135M-Instruct on exact, exact read"
std::string arm_title(const ReportArm& arm);
/// Who answered, in short, from the stored identity: "vllm, 0.32.0, SmolLM2-135M". All of it is in
/// the JSON report and in the store.
std::string served_text(const std::string& identity);
/// "not run: terms not accepted"
std::string arm_state(const ReportArm& arm);

}  // namespace preval
