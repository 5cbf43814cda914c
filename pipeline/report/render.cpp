#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "base/text.h"
#include "report/rendering.h"

namespace preval {

std::string draw_bar(const Bar& bar, int columns) {
  static constexpr std::array<std::string_view, 8> kEighths = {" ", "▏", "▎", "▍",
                                                               "▌", "▋", "▊", "▉"};
  const auto within = [](double share) { return std::clamp(share, 0.0, 1.0); };
  const int eighths = static_cast<int>(std::lround(within(bar.value) * 8 * columns));
  const int full = eighths / 8;
  const int shaded = bar.high ? static_cast<int>(std::lround(within(*bar.high) * columns)) : 0;
  const int mark =
      bar.mark ? std::min(static_cast<int>(within(*bar.mark) * columns), columns - 1) : -1;
  std::string text;
  for (int i = 0; i < columns; ++i) {
    if (i == mark) {
      text += "│";
    } else if (i < full) {
      text += "█";
    } else if (i == full && eighths % 8 > 0) {
      text += kEighths[static_cast<std::size_t>(eighths % 8)];
    } else {
      text += i < shaded ? "░" : " ";
    }
  }
  return text;
}

std::string render(const ReportModel& model, ReportFormat format, const RenderOptions& options) {
  switch (format) {
    case ReportFormat::table:
      return render_terminal(build_document(model), options);
    case ReportFormat::markdown:
      return printable(render_markdown(build_document(model)));
    case ReportFormat::json:
      return render_json(model);
  }
  throw std::logic_error("no such report format");
}

}  // namespace preval
