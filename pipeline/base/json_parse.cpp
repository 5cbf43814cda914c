#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace preval {
namespace {

constexpr std::size_t kDeepest = 256;
constexpr std::size_t kMostKeys = 300;  // the quick way looks for duplicates one by one

/// Turns byte offsets of one text into errors with a line and a column (in characters, from 1).
class Locator {
 public:
  Locator(std::string_view text, std::string_view where, int first_line)
      : text_(text), where_(where), first_line_(first_line) {}

  template <class Kind = Error>
  [[noreturn]] void fail(std::size_t offset, std::string_view message, std::string hint) const {
    const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
    const auto line = first_line_ + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto is_lead = [](char byte) {
      return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    };
    const auto column = 1 + std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start),
                                          before.end(), is_lead);
    throw Kind(ErrorKind::usage,
               fmt::format("{}, line {}, column {}: {}", where_, line, column, message),
               std::move(hint));
  }

 private:
  std::string_view text_;
  std::string_view where_;
  int first_line_;
};

/// An input iterator over the text that leaves its position where the handler below can see it: the
/// parser tells a handler where a syntax error is, but not where a key is.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// Builds the value from nlohmann's events and refuses what its own builder lets pass: a second key
/// of one name, deep nesting, and integers that only a rounded double could hold.
class Builder {
 public:
  Builder(const Locator& locator, const char* begin, const char* const* reached)
      : locator_(locator), begin_(begin), reached_(reached) {}

  Json take() { return std::move(root_); }

  bool null() { return place(nullptr); }
  bool boolean(bool value) { return place(value); }
  bool number_integer(Json::number_integer_t value) { return place(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return place(value); }
  bool number_float(Json::number_float_t value, const std::string& text) {
    // Not by its decimal point: the parser writes that as the locale has it.
    if (text.find_first_not_of("-0123456789") == std::string::npos) {
      locator_.fail(offset(), fmt::format("the integer {} does not fit into 64 bits", text),
                    "write it as a string, or with a decimal point if it may be rounded");
    }
    return place(value);
  }
  bool string(std::string& value) { return place(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }  // JSON text has none

  bool start_object(std::size_t /*unknown*/) { return open(Json::object()); }
  bool start_array(std::size_t /*unknown*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!levels_.back().keys.insert(name).second) {
      locator_.fail<DuplicateKey>(offset(),
                                  fmt::format("the key \"{}\" appears twice in one object", name),
                                  "remove one of the two");
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const Json::exception& problem) {
    // The parser counts the characters it has taken, the end of the text as one of them.
    std::string_view words = problem.what();
    for (const std::string_view prefix : {"] ", "column ", ": "}) {
      const std::size_t at = words.find(prefix);
      if (at != std::string_view::npos) words.remove_prefix(at + prefix.size());
    }
    locator_.fail(position == 0 ? 0 : position - 1, words, "correct the JSON text");
  }

 private:
  struct Level {
    Json* value;
    std::unordered_set<std::string> keys;
  };

  std::size_t offset() const {
    const std::ptrdiff_t taken = *reached_ - begin_;
    return taken == 0 ? 0 : static_cast<std::size_t>(taken) - 1;
  }

  /// Puts a value where the parser is. Only the innermost container ever grows, so the addresses
  /// of those around it hold.
  Json* put(Json&& value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    // Past ordered_map, whose own insertion looks through all keys: key() has done that by hash.
    Json::object_t::Container& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }

  template <class T>
  bool place(T&& value) {
    put(Json(std::forward<T>(value)));
    return true;
  }

  bool open(Json&& container) {
    if (levels_.size() == kDeepest) {
      locator_.fail(offset(), fmt::format("more than {} levels of nesting", kDeepest),
                    "flatten the value");
    }
    levels_.push_back({put(std::move(container)), {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  const Locator& locator_;
  const char* begin_;
  const char* const* reached_;
  Json root_;
  std::vector<Level> levels_;
  std::string key_;
};

/// The quick way: simdjson reads ordinary text several times faster than nlohmann, but cannot say
/// where a text is wrong, takes a key that stands twice, and lets half a surrogate pair pass. So
/// whatever is not plain goes the slow way, which gives the same value or the reason why there is
/// none.
class QuickReader {
 public:
  std::optional<Json> read(std::string_view text) {
    if (has_surrogate_escape(text)) return std::nullopt;
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
    Json value;
    if (!take(root, value, 0)) return std::nullopt;
    return value;
  }

 private:
  static bool has_surrogate_escape(std::string_view text) {
    for (std::size_t at = text.find('\\'); at != std::string_view::npos;
         at = text.find('\\', at + 2)) {
      const std::string_view escape = text.substr(at, 3);
      if (escape == "\\ud" || escape == "\\uD") return true;
    }
    return false;
  }

  bool take(simdjson::dom::element from, Json& to, std::size_t depth) {
    if (depth == kDeepest && (from.is_object() || from.is_array())) return false;
    switch (from.type()) {
      case simdjson::dom::element_type::OBJECT:
        return take_object(from, to, depth);
      case simdjson::dom::element_type::ARRAY: {
        to = Json::array();
        auto& items = to.get_ref<Json::array_t&>();
        for (const simdjson::dom::element item : simdjson::dom::array(from)) {
          if (!take(item, items.emplace_back(), depth + 1)) return false;
        }
        return true;
      }
      case simdjson::dom::element_type::STRING:
        to = std::string(std::string_view(from));
        return true;
      case simdjson::dom::element_type::INT64: {
        const std::int64_t number = from;
        // As nlohmann does it: what is not negative is unsigned.
        if (number < 0) {
          to = number;
        } else {
          to = static_cast<std::uint64_t>(number);
        }
        return true;
      }
      case simdjson::dom::element_type::UINT64:
        to = std::uint64_t(from);
        return true;
      case simdjson::dom::element_type::DOUBLE:
        to = double(from);
        return true;
      case simdjson::dom::element_type::BOOL:
        to = bool(from);
        return true;
      case simdjson::dom::element_type::NULL_VALUE:
        to = nullptr;
        return true;
      default:
        return false;
    }
  }

  bool take_object(simdjson::dom::element from, Json& to, std::size_t depth) {
    to = Json::object();
    Json::object_t::Container& members = to.get_ref<Json::object_t&>();
    const simdjson::dom::object object = from;
    if (object.size() > kMostKeys) return false;
    members.reserve(object.size());
    for (const simdjson::dom::key_value_pair field : object) {
      for (const auto& member : members) {
        if (member.first == field.key) return false;
      }
      members.emplace_back(std::string(field.key), nullptr);
      if (!take(field.value, members.back().second, depth + 1)) return false;
    }
    return true;
  }
};

}  // namespace

Json parse_json(std::string_view text, std::string_view where, int first_line) {
  const Locator locator(text, where, first_line);
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    locator.fail(0, "the text begins with a byte order mark", "save it as UTF-8 without one");
  }
  if (std::optional<Json> value = QuickReader().read(text)) return std::move(*value);
  if (const auto bad = invalid_utf8(text)) {
    locator.fail(*bad,
                 fmt::format("byte 0x{:02X} is not valid UTF-8",
                             static_cast<unsigned>(static_cast<unsigned char>(text[*bad]))),
                 "save the text as UTF-8");
  }
  // The parser takes a zero byte for the end of the text and would not look at what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    locator.fail(zero, "a zero byte", "the file may be damaged; get it again");
  }
  // The parser's own words for this differ between its versions.
  if (text.empty()) {
    locator.fail(0, "unexpected end of input: the text is empty", "the file may be damaged");
  }
  const char* reached = text.data();
  Builder builder(locator, text.data(), &reached);
  Json::sax_parse(CountingIterator(text.data(), &reached),
                  CountingIterator(text.data() + text.size(), &reached), &builder);
  return builder.take();
}

}  // namespace preval
