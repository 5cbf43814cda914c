#pragma once
// JSON that people write by hand is read through an ObjectReader: it knows where in the file it is,
// so that every complaint names file, JSON pointer and reason, and it remembers which keys were
// asked for, so that a misspelt key is an error with a suggestion instead of a setting that
// silently keeps its default. Plans, locks, ledgers, manifests and prompt files all go through it.
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace preval {

/// Numbers that a field accepts.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  ///< `least` itself is refused
};
inline constexpr Range any_positive{0, std::numeric_limits<double>::infinity(), true};
inline constexpr Range not_negative{0};
inline constexpr Range at_least_one{1};
inline constexpr Range share{0, 1};

/// One token of a JSON pointer, escaped (RFC 6901).
std::string pointer_token(std::string_view key);

/// Reads one JSON object. Getters without a suffix are for required keys, `_or` for optional ones
/// with a default, `_if` for optional ones without; null counts as absent for optional keys. A
/// required key that is absent gives an empty value for now: finish() reports it, after unknown
/// keys, because a misspelt key is both. Everything else throws at once.
class ObjectReader {
 public:
  /// `json` must be an object and outlive the reader. `where` names the file; `kind` is that of
  /// errors.
  ObjectReader(const Json& json, std::string where, std::string pointer = {},
               ErrorKind kind = ErrorKind::usage);

  /// A string that is not empty.
  std::string text(std::string_view key);
  /// A string, which may be empty.
  std::string any_text(std::string_view key);
  std::string text_or(std::string_view key, std::string_view fallback);
  /// A name: letters, digits, '.', '_' and '-', not first a '.' or '-', at most 80 characters.
  std::string identifier(std::string_view key);
  /// A path below the file's folder or beside it: relative, with forward slashes.
  std::string relative_path(std::string_view key);
  /// 64 lower-case hexadecimal digits.
  std::string digest(std::string_view key);
  /// One of the allowed words.
  std::string word(std::string_view key, const std::vector<std::string>& allowed);
  std::string word_or(std::string_view key, std::string_view fallback,
                      const std::vector<std::string>& allowed);
  bool flag(std::string_view key);
  bool flag_or(std::string_view key, bool fallback);
  double number(std::string_view key, Range range);
  double number_or(std::string_view key, double fallback, Range range);
  std::optional<double> number_if(std::string_view key, Range range);
  template <class T = int>
  T integer(std::string_view key, Range range) {
    return static_cast<T>(integer_value(key, true, range, largest<T>()).value_or(0));
  }
  template <class T>
  T integer_or(std::string_view key, T fallback, Range range) {
    const auto value = integer_value(key, false, range, largest<T>());
    return value ? static_cast<T>(*value) : fallback;
  }
  /// An array of strings that are not empty, `least` of them or more.
  std::vector<std::string> texts(std::string_view key, std::size_t least);
  std::vector<std::string> texts_or(std::string_view key, std::vector<std::string> fallback);
  /// Enumerations with a to_text() of their own.
  template <class E>
  E one_of(std::string_view key, std::initializer_list<E> values) {
    return named(word(key, names(values)), values);
  }
  template <class E>
  E one_of_or(std::string_view key, E fallback, std::initializer_list<E> values) {
    return named(word_or(key, to_text(fallback), names(values)), values);
  }
  /// Any JSON value, null included.
  Json value(std::string_view key);
  /// An object of numbers.
  std::map<std::string, double> numbers_or(std::string_view key, Range range,
                                           const std::vector<std::string>& allowed);
  std::map<std::string, int> counts(std::string_view key);

  using Visit = std::function<void(ObjectReader&)>;
  /// Nested objects; finish() is called on each after `visit`.
  void object(std::string_view key, const Visit& visit);
  bool object_if(std::string_view key, const Visit& visit);
  /// An array of objects, `least` of them or more.
  void objects(std::string_view key, std::size_t least, const Visit& visit);
  /// An object whose keys are data: every value is an object, visited with its key.
  void each(const std::function<void(const std::string&, ObjectReader&)>& visit);

  /// Keys that may be there and mean nothing here.
  void ignore(std::initializer_list<std::string_view> keys);
  bool has(std::string_view key) const;
  /// Refuses keys that nobody asked for, then required keys that are not there.
  void finish();

  const std::string& where() const { return where_; }
  std::string pointer(std::string_view key) const;
  /// Throws an error about one key of this object.
  [[noreturn]] void fail(std::string_view key, const std::string& reason,
                         const std::string& hint = {}) const;

 private:
  template <class T>
  static constexpr double largest() {
    constexpr double exact = 9007199254740991.0;  // 2^53 - 1: beyond it JSON numbers lose digits
    constexpr auto limit = std::numeric_limits<T>::max();
    return sizeof(T) < sizeof(std::int64_t) ? static_cast<double>(limit) : exact;
  }
  template <class E>
  static std::vector<std::string> names(std::initializer_list<E> values) {
    std::vector<std::string> result;
    for (const E value : values) result.emplace_back(to_text(value));
    return result;
  }
  template <class E>
  static E named(const std::string& name, std::initializer_list<E> values) {
    for (const E value : values) {
      if (to_text(value) == name) return value;
    }
    return *values.begin();  // a required key that is absent: finish() will say so
  }

  const Json* required(std::string_view key);
  const Json* optional(std::string_view key);
  std::optional<std::int64_t> integer_value(std::string_view key, bool is_required, Range range,
                                            double type_most);
  double checked_number(std::string_view key, const Json& value, Range range) const;
  std::string checked_text(std::string_view key, const Json& value) const;
  void check_range(std::string_view key, double value, Range range) const;
  std::string checked_word(std::string_view key, const Json& value,
                           const std::vector<std::string>& allowed) const;
  std::vector<std::string> checked_texts(std::string_view key, const Json& value) const;
  const Json& expect(std::string_view key, const Json& value, Json::value_t type) const;
  std::string meant(const std::string& key, const std::vector<std::string>& absent) const;

  const Json& json_;
  std::string where_, pointer_;
  ErrorKind kind_;
  std::vector<std::string> known_, missing_;
};

}  // namespace preval
