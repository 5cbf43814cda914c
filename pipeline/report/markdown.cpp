// The report as Markdown (GitHub's tables), for repositories and pull requests.
#include <fmt/format.h>

#include "report/rendering.h"

namespace preval {

namespace {

constexpr int kBarColumns = 20;

/// Text inside a table or a list: nothing in it may be taken for markup.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n') {
      safe += ' ';
      continue;
    }
    if (std::string_view("\\`*_{}[]<>|#~").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string cell_text(const TableCell& cell) {
  return cell.bar ? fmt::format("`{}`", draw_bar(*cell.bar, kBarColumns)) : escaped(cell.text);
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

class Markdown {
 public:
  std::string render(const Document& document) {
    text_ = fmt::format("# {}\n", escaped(document.title));
    for (const std::string& banner : document.banners) add("\n> **{}**\n", banner);
    if (!document.lead.empty()) add("\n{}\n", document.lead);
    for (const Section& section : document.sections) {
      add("\n## {}\n", section.title);
      for (const Block& block : section.blocks)
        std::visit([this](const auto& each) { add(each); }, block);
    }
    return std::move(text_);
  }

 private:
  void add(fmt::format_string<std::string> form, std::string_view text) {
    text_ += fmt::format(form, escaped(text));
  }

  void add(const Heading& heading) { add("\n### {}\n", heading.text); }

  void add(const Paragraph& paragraph) { add("\n{}\n", paragraph.text); }

  void add(const Bullets& bullets) {
    text_ += "\n";
    for (const std::string& item : bullets.items) add("- {}\n", item);
  }

  void add(const Table& table) {
    text_ += "\n|";
    for (const Column& column : table.columns) add(" {} |", column.title);
    text_ += "\n|";
    for (const Column& column : table.columns) text_ += column.right ? "---:|" : "---|";
    text_ += "\n";
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      // Markdown has no lines inside a table: what stands below one is set in bold.
      const bool sums = !table.rules.empty() && i >= table.rules.front();
      text_ += "|";
      for (const TableCell& cell : table.rows[i]) {
        const std::string inner = trimmed(cell_text(cell));
        text_ += sums && !cell.bar && !inner.empty() ? fmt::format(" **{}** |", inner)
                                                     : fmt::format(" {} |", inner);
      }
      text_ += "\n";
    }
  }

  std::string text_;
};

}  // namespace

std::string render_markdown(const Document& document) { return Markdown().render(document); }

}  // namespace preval
