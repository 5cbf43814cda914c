#include "plan/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace preval {
namespace {

std::string_view type_name(Json::value_t type) {
  switch (type) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "a number";
    default:
      return "something else";
  }
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::string range_text(Range range) {
  if (std::isfinite(range.most) && std::isfinite(range.least)) {
    return range.above_least ? fmt::format("above {} and at most {}", range.least, range.most)
                             : fmt::format("from {} to {}", range.least, range.most);
  }
  if (std::isfinite(range.most)) return fmt::format("at most {}", range.most);
  return fmt::format("{} {}", range.above_least ? "above" : "at least", range.least);
}

}  // namespace

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

ObjectReader::ObjectReader(const Json& json, std::string where, std::string pointer, ErrorKind kind)
    : json_(json), where_(std::move(where)), pointer_(std::move(pointer)), kind_(kind) {
  if (!json_.is_object()) {
    const std::string place = pointer_.empty() ? where_ : where_ + ": " + pointer_;
    throw Error(kind_,
                fmt::format("{}: expected an object, found {}", place, type_name(json_.type())));
  }
}

std::string ObjectReader::pointer(std::string_view key) const {
  return pointer_ + "/" + pointer_token(key);
}

void ObjectReader::fail(std::string_view key, const std::string& reason,
                        const std::string& hint) const {
  throw Error(kind_, fmt::format("{}: {}: {}", where_, pointer(key), reason), hint);
}

bool ObjectReader::has(std::string_view key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

const Json* ObjectReader::required(std::string_view key) {
  known_.emplace_back(key);
  const auto found = json_.find(key);
  if (found != json_.end()) return &*found;
  missing_.emplace_back(key);
  return nullptr;
}

const Json* ObjectReader::optional(std::string_view key) {
  known_.emplace_back(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void ObjectReader::ignore(std::initializer_list<std::string_view> keys) {
  known_.insert(known_.end(), keys.begin(), keys.end());
}

/// What a key was meant to be: one that is absent, or one that is there as well.
std::string ObjectReader::meant(const std::string& key,
                                const std::vector<std::string>& absent) const {
  std::string text = did_you_mean(key, absent);
  if (!text.empty()) return text;
  text = did_you_mean(key, known_);
  return text.empty() ? text : text + " It is there already";
}

void ObjectReader::finish() {
  std::vector<std::string> absent;
  for (const std::string& key : known_) {
    if (!json_.contains(key)) absent.push_back(key);
  }
  for (const auto& item : json_.items()) {
    if (contains(known_, item.key())) continue;
    fail(item.key(), fmt::format("unknown key \"{}\"{}", item.key(), meant(item.key(), absent)),
         "known keys here: " + join(known_, ", "));
  }
  if (missing_.empty()) return;
  fail(missing_.front(), fmt::format("required key \"{}\" is missing", missing_.front()),
       "every field is described in prereg/FORMAT.md");
}

const Json& ObjectReader::expect(std::string_view key, const Json& value,
                                 Json::value_t type) const {
  if (value.type() != type) {
    fail(key, fmt::format("expected {}, found {}", type_name(type), type_name(value.type())));
  }
  return value;
}

std::string ObjectReader::checked_text(std::string_view key, const Json& value) const {
  std::string result = expect(key, value, Json::value_t::string).get<std::string>();
  if (result.empty()) fail(key, "must not be empty");
  return result;
}

std::string ObjectReader::text(std::string_view key) {
  const Json* value = required(key);
  return value == nullptr ? std::string() : checked_text(key, *value);
}

std::string ObjectReader::any_text(std::string_view key) {
  const Json* value = required(key);
  if (value == nullptr) return {};
  return expect(key, *value, Json::value_t::string).get<std::string>();
}

std::string ObjectReader::text_or(std::string_view key, std::string_view fallback) {
  const Json* value = optional(key);
  if (value == nullptr) return std::string(fallback);
  return expect(key, *value, Json::value_t::string).get<std::string>();
}

std::string ObjectReader::identifier(std::string_view key) {
  std::string name = text(key);
  if (name.empty()) return name;
  if (name.size() > 80 || name.front() == '.' || name.front() == '-' ||
      !std::all_of(name.begin(), name.end(), is_name_character)) {
    fail(
        key, fmt::format("\"{}\" cannot be a name", name),
        "names are made of letters, digits, '.', '_' and '-', begin with a letter, a digit or '_', "
        "and have at most 80 characters");
  }
  return name;
}

std::string ObjectReader::relative_path(std::string_view key) {
  std::string path = text(key);
  if (!path.empty() && (path.front() == '/' || path.find('\\') != std::string::npos)) {
    fail(key, fmt::format("\"{}\" is not a relative path with forward slashes", path),
         "paths are relative to the folder of the plan, so that others can use it too");
  }
  return path;
}

std::string ObjectReader::digest(std::string_view key) {
  std::string hex = text(key);
  const bool all_hex = std::all_of(hex.begin(), hex.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (!hex.empty() && (hex.size() != 64 || !all_hex)) {
    fail(key,
         fmt::format("\"{}\" is not a SHA-256: expected 64 lower-case hexadecimal digits", hex));
  }
  return hex;
}

std::string ObjectReader::checked_word(std::string_view key, const Json& value,
                                       const std::vector<std::string>& allowed) const {
  std::string name = expect(key, value, Json::value_t::string).get<std::string>();
  if (!contains(allowed, name)) {
    fail(key, fmt::format("unknown value \"{}\"{}", name, did_you_mean(name, allowed)),
         "allowed here: " + join(allowed, ", "));
  }
  return name;
}

std::string ObjectReader::word(std::string_view key, const std::vector<std::string>& allowed) {
  const Json* value = required(key);
  return value == nullptr ? std::string() : checked_word(key, *value, allowed);
}

std::string ObjectReader::word_or(std::string_view key, std::string_view fallback,
                                  const std::vector<std::string>& allowed) {
  const Json* value = optional(key);
  return value == nullptr ? std::string(fallback) : checked_word(key, *value, allowed);
}

bool ObjectReader::flag(std::string_view key) {
  const Json* value = required(key);
  return value != nullptr && expect(key, *value, Json::value_t::boolean).get<bool>();
}

bool ObjectReader::flag_or(std::string_view key, bool fallback) {
  const Json* value = optional(key);
  return value == nullptr ? fallback : expect(key, *value, Json::value_t::boolean).get<bool>();
}

void ObjectReader::check_range(std::string_view key, double value, Range range) const {
  if (value < range.least || value > range.most || (range.above_least && value == range.least)) {
    fail(key, fmt::format("must be {}, is {}", range_text(range), value));
  }
}

double ObjectReader::checked_number(std::string_view key, const Json& value, Range range) const {
  if (!value.is_number()) {
    fail(key, fmt::format("expected a number, found {}", type_name(value.type())));
  }
  const auto result = value.get<double>();
  check_range(key, result, range);
  return result;
}

double ObjectReader::number(std::string_view key, Range range) {
  const Json* value = required(key);
  return value == nullptr ? 0 : checked_number(key, *value, range);
}

double ObjectReader::number_or(std::string_view key, double fallback, Range range) {
  return number_if(key, range).value_or(fallback);
}

std::optional<double> ObjectReader::number_if(std::string_view key, Range range) {
  const Json* value = optional(key);
  if (value == nullptr) return std::nullopt;
  return checked_number(key, *value, range);
}

std::optional<std::int64_t> ObjectReader::integer_value(std::string_view key, bool is_required,
                                                        Range range, double type_most) {
  const Json* value = is_required ? required(key) : optional(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) {
    fail(key,
         fmt::format("expected a whole number, found {}",
                     value->is_number() ? value->dump() : std::string(type_name(value->type()))));
  }
  const auto number = value->get<double>();
  check_range(key, number, range);
  if (number > type_most)
    fail(key, fmt::format("must be at most {:.0f}, is {}", type_most, value->dump()));
  return value->get<std::int64_t>();
}

std::vector<std::string> ObjectReader::checked_texts(std::string_view key,
                                                     const Json& value) const {
  std::vector<std::string> result;
  for (const Json& element : expect(key, value, Json::value_t::array)) {
    if (!element.is_string() || element.get_ref<const std::string&>().empty()) {
      fail(key, fmt::format("element {} is not a string, or empty", result.size()));
    }
    // Commands and environments end at one, and so would be others than the plan says.
    if (element.get_ref<const std::string&>().find('\0') != std::string::npos) {
      fail(key, fmt::format("element {} holds a zero character", result.size()));
    }
    result.push_back(element.get<std::string>());
  }
  return result;
}

std::vector<std::string> ObjectReader::texts(std::string_view key, std::size_t least) {
  const Json* value = required(key);
  if (value == nullptr) return {};
  std::vector<std::string> result = checked_texts(key, *value);
  if (result.size() < least) fail(key, fmt::format("needs at least {} element(s)", least));
  return result;
}

std::vector<std::string> ObjectReader::texts_or(std::string_view key,
                                                std::vector<std::string> fallback) {
  const Json* value = optional(key);
  return value == nullptr ? std::move(fallback) : checked_texts(key, *value);
}

Json ObjectReader::value(std::string_view key) {
  const Json* value = required(key);
  return value == nullptr ? Json() : *value;
}

std::map<std::string, double> ObjectReader::numbers_or(std::string_view key, Range range,
                                                       const std::vector<std::string>& allowed) {
  std::map<std::string, double> result;
  object_if(key, [&](ObjectReader& entries) {
    for (const std::string& name : allowed) {
      if (const auto value = entries.number_if(name, range)) result[name] = *value;
    }
  });
  return result;
}

std::map<std::string, int> ObjectReader::counts(std::string_view key) {
  std::map<std::string, int> result;
  object(key, [&](ObjectReader& entries) {
    for (const auto& item : entries.json_.items()) {
      result[item.key()] = entries.integer(item.key(), not_negative);
    }
  });
  return result;
}

void ObjectReader::object(std::string_view key, const Visit& visit) {
  const Json* value = required(key);
  if (value == nullptr) return;
  ObjectReader nested(*value, where_, pointer(key), kind_);
  visit(nested);
  nested.finish();
}

bool ObjectReader::object_if(std::string_view key, const Visit& visit) {
  const Json* value = optional(key);
  if (value == nullptr) return false;
  ObjectReader nested(*value, where_, pointer(key), kind_);
  visit(nested);
  nested.finish();
  return true;
}

void ObjectReader::objects(std::string_view key, std::size_t least, const Visit& visit) {
  const Json* value = required(key);
  if (value == nullptr) return;
  const Json& array = expect(key, *value, Json::value_t::array);
  if (array.size() < least) fail(key, fmt::format("needs at least {} element(s)", least));
  for (std::size_t i = 0; i < array.size(); ++i) {
    ObjectReader nested(array[i], where_, fmt::format("{}/{}", pointer(key), i), kind_);
    visit(nested);
    nested.finish();
  }
}

void ObjectReader::each(const std::function<void(const std::string&, ObjectReader&)>& visit) {
  for (const auto& item : json_.items()) {
    known_.push_back(item.key());
    ObjectReader nested(item.value(), where_, pointer(item.key()), kind_);
    visit(item.key(), nested);
    nested.finish();
  }
}

}  // namespace preval
