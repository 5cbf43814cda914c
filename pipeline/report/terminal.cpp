// The report for a terminal: as wide as it is, in colour if it has any.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/rendering.h"

namespace preval {

namespace {

constexpr int kMostBarColumns = 24, kLeastBarColumns = 8;
constexpr int kLeastTextColumns = 8;
constexpr int kGap = 2;
constexpr int kIndent = 2;
constexpr int kLeastWidth = 40;

std::string spaces(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

int width_of(std::string_view text) { return static_cast<int>(display_width(text)); }

class Terminal {
 public:
  explicit Terminal(const RenderOptions& options)
      : color_(options.color),
        brief_(options.brief),
        width_(std::max(options.width, kLeastWidth)) {}

  std::string render(const Document& document) {
    line(painted("1", printable(document.title)));
    for (const std::string& banner : document.banners) wrapped(banner, 0, "1;33");
    if (!document.lead.empty()) wrapped(document.lead, 0, "");
    for (const Section& section : document.sections) {
      if (brief_ && section.detail) continue;
      line("");
      line(painted("1;4", section.title));
      for (const Block& block : section.blocks)
        std::visit([this](const auto& each) { add(each); }, block);
    }
    return std::move(text_);
  }

 private:
  void add(const Heading& heading) {
    line("");
    line(painted("1", printable(heading.text)));
  }

  void add(const Paragraph& paragraph) { wrapped(paragraph.text, 0, "2"); }

  void add(const Bullets& bullets) {
    for (const std::string& item : bullets.items) wrapped(fmt::format("- {}", item), 2, "");
  }

  void add(const Table& table) {
    if (after_table_) line("");
    std::vector<int> widths = natural_widths(table);
    fold_titles(table, widths);
    const std::vector<std::size_t> shown = columns_that_fit(table, widths);
    widen_bars(table, shown, widths);
    shrink(table, shown, widths);
    std::vector<TableCell> titles;
    for (const Column& column : table.columns) titles.push_back({column.title});
    put_row(table, titles, shown, widths, "2");
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      if (std::find(table.rules.begin(), table.rules.end(), i) != table.rules.end())
        rule(shown, widths);
      put_row(table, table.rows[i], shown, widths, "");
    }
    say_what_is_left_out(table, shown);
    after_table_ = true;
  }

  /// A bar is a picture of a number that is there; any other column that had to go is named.
  void say_what_is_left_out(const Table& table, const std::vector<std::size_t>& shown) {
    std::vector<std::string> absent;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (std::find(shown.begin(), shown.end(), c) == shown.end() &&
          !table.columns[c].title.empty())
        absent.push_back(table.columns[c].title);
    }
    if (absent.empty()) return;
    wrapped(fmt::format("  left out for want of room: {}", join(absent, "; ")), 2, "2");
  }

  /// What the texts need, and bars at the least.
  static std::vector<int> natural_widths(const Table& table) {
    std::vector<int> widths;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      int width = width_of(table.columns[c].title);
      for (const auto& row : table.rows) {
        width = std::max(width, row[c].bar ? kLeastBarColumns : width_of(row[c].text));
      }
      widths.push_back(width);
    }
    return widths;
  }

  /// Where all titles on one line would be too wide, they are folded between words.
  void fold_titles(const Table& table, std::vector<int>& widths) const {
    std::vector<std::size_t> all;
    for (std::size_t c = 0; c < table.columns.size(); ++c) all.push_back(c);
    while (total_of(all, widths) > width_) {
      std::optional<std::size_t> widest;
      for (const std::size_t c : all) {
        int least = longest_word(table.columns[c].title);
        for (const auto& row : table.rows)
          least = std::max(least, row[c].bar ? kLeastBarColumns : width_of(row[c].text));
        if (!table.columns[c].right || widths[c] <= least) continue;
        if (!widest || widths[c] > widths[*widest]) widest = c;
      }
      if (!widest) return;
      --widths[*widest];
    }
  }

  static int total_of(const std::vector<std::size_t>& shown, const std::vector<int>& widths) {
    int total = kIndent;
    for (const std::size_t c : shown) total += widths[c] + kGap;
    return total - kGap;
  }

  std::vector<std::size_t> columns_that_fit(const Table& table,
                                            const std::vector<int>& widths) const {
    std::vector<std::size_t> shown;
    for (std::size_t c = 0; c < table.columns.size(); ++c) shown.push_back(c);
    while (total_of(shown, widths) > width_) {
      const auto sparest =
          std::max_element(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
            return table.columns[a].spare < table.columns[b].spare;
          });
      if (table.columns[*sparest].spare == 0) break;
      shown.erase(sparest);
    }
    return shown;
  }

  void widen_bars(const Table& table, const std::vector<std::size_t>& shown,
                  std::vector<int>& widths) const {
    for (const std::size_t c : shown) {
      const bool bars = std::any_of(table.rows.begin(), table.rows.end(),
                                    [&](const auto& row) { return row[c].bar.has_value(); });
      const int room = width_ - total_of(shown, widths);
      if (bars && room > 0)
        widths[c] = std::max(widths[c], std::min(kMostBarColumns, widths[c] + room));
    }
  }

  /// Long texts are folded into several lines, the widest left-aligned column first: between words
  /// as long as that is enough, then anywhere, since a table wider than the terminal cannot be
  /// read.
  void shrink(const Table& table, const std::vector<std::size_t>& shown,
              std::vector<int>& widths) const {
    std::vector<int> least(widths.size());
    for (const std::size_t c : shown) least[c] = longest_word(table, c);
    shrink_to(least, table, shown, widths);
    shrink_to(std::vector<int>(widths.size(), kLeastTextColumns), table, shown, widths);
  }

  void shrink_to(const std::vector<int>& least, const Table& table,
                 const std::vector<std::size_t>& shown, std::vector<int>& widths) const {
    while (total_of(shown, widths) > width_) {
      std::optional<std::size_t> widest;
      for (const std::size_t c : shown) {
        if (table.columns[c].right || widths[c] <= least[c]) continue;
        if (!widest || widths[c] > widths[*widest]) widest = c;
      }
      if (!widest) return;
      --widths[*widest];
    }
  }

  static int longest_word(const Table& table, std::size_t column) {
    constexpr int kLongest = 24;  // digests may be broken anywhere
    int longest = longest_word(table.columns[column].title);
    for (const auto& row : table.rows) {
      longest = std::max(longest, longest_word(row[column].text));
    }
    return std::min(longest, kLongest);
  }

  static int longest_word(std::string_view text) {
    int longest = 0;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      longest = std::max(longest, width_of(word));
      text.remove_prefix(std::min(word.size() + 1, text.size()));
    }
    return longest;
  }

  void put_row(const Table& table, const std::vector<TableCell>& row,
               const std::vector<std::size_t>& shown, const std::vector<int>& widths,
               std::string_view style) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (const std::size_t c : shown) {
      cells.push_back(row[c].bar ? std::vector<std::string>{draw_bar(*row[c].bar, widths[c])}
                                 : folded(row[c].text, widths[c]));
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t l = 0; l < lines; ++l) {
      std::string text = spaces(kIndent);
      for (std::size_t i = 0; i < shown.size(); ++i) {
        const std::string piece = l < cells[i].size() ? cells[i][l] : std::string();
        const std::string padding = spaces(widths[shown[i]] - width_of(piece));
        const bool right = table.columns[shown[i]].right;
        const std::string_view paint = row[shown[i]].bar ? "36" : style;
        if (i > 0) text += spaces(kGap);
        text += right ? padding + painted(paint, piece) : painted(paint, piece) + padding;
      }
      line(text);
    }
  }

  void rule(const std::vector<std::size_t>& shown, const std::vector<int>& widths) {
    std::string dashes;
    for (int i = kIndent; i < total_of(shown, widths); ++i) dashes += "─";
    line(spaces(kIndent) + painted("2", dashes));
  }

  /// Lines of at most `width` columns, broken at spaces, inside a word where it is longer.
  static std::vector<std::string> folded(std::string_view raw, int width) {
    const std::string clean = printable(raw);
    std::string_view text = clean;
    std::vector<std::string> lines(1);
    int used = 0;
    const auto fresh = [&] {
      lines.emplace_back();
      used = 0;
    };
    while (!text.empty()) {
      const std::size_t space = text.find(' ');
      std::string_view word = text.substr(0, space);
      text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
      if (used > 0 && used + 1 + width_of(word) > width) fresh();
      if (used > 0) {
        lines.back() += ' ';
        ++used;
      }
      int left = width_of(word);
      while (left > width) {
        std::size_t cut = 0;
        while (width_of(word.substr(0, next_character(word, cut))) <= width)
          cut = next_character(word, cut);
        if (cut == 0) break;
        lines.back() += word.substr(0, cut);
        left -= width_of(word.substr(0, cut));
        word.remove_prefix(cut);
        fresh();
      }
      lines.back() += word;
      used += left;
    }
    return lines;
  }

  static std::size_t next_character(std::string_view text, std::size_t at) {
    if (at < text.size()) ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  }

  void wrapped(std::string_view text, int hanging, std::string_view style) {
    bool first = true;
    for (const std::string& piece : folded(text, width_ - hanging)) {
      line(fmt::format("{}{}", spaces(first ? 0 : hanging), painted(style, piece)));
      first = false;
    }
  }

  std::string painted(std::string_view style, std::string_view text) const {
    if (!color_ || style.empty() || text.empty()) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", style, text);
  }

  void line(std::string text) {
    after_table_ = false;
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text_ += text + '\n';
  }

  bool color_, brief_, after_table_ = false;
  int width_;
  std::string text_;
};

}  // namespace

std::string render_terminal(const Document& document, const RenderOptions& options) {
  return Terminal(options).render(document);
}

}  // namespace preval
