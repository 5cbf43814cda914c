#pragma once
// The renderings, one function each, and what they share. A new one is a new file and a line in
// render.cpp.
#include <string>
#include <vector>

#include "report/document.h"

namespace preval {

std::string render_terminal(const Document& document, const RenderOptions& options);
std::string render_markdown(const Document& document);
std::string render_json(const ReportModel& model);

/// A bar of that many columns in block characters: eighths of a column for the value, light shade
/// up to `high`, a vertical line at the mark.
std::string draw_bar(const Bar& bar, int columns);

}  // namespace preval
