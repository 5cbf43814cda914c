#pragma once
// Small text functions that more than one stage needs. All of them ignore the locale.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace preval {

/// Byte offset of the first byte that is not part of valid UTF-8 (RFC 3629: no surrogates, no
/// overlong forms, nothing above U+10FFFF), or nothing when all of it is valid.
std::optional<std::size_t> invalid_utf8(std::string_view text);

/// Valid UTF-8 from anything: each byte that is none becomes U+FFFD.
std::string made_valid(std::string_view text);

/// For eyes: valid UTF-8 without control characters other than line feed and tab, and without those
/// that turn the writing direction. Each becomes U+FFFD, so that nothing a file or a server says
/// can move a cursor or hide a word.
std::string printable(std::string_view text);

/// Terminal columns that the text takes: wide characters count two (EastAsianWidth.txt, W and F),
/// combining and control characters none, a byte that is not UTF-8 one.
std::size_t display_width(std::string_view utf8);

/// The candidate nearest to `word` by edit distance, or nothing when none is near enough (a
/// distance of at most a third of the length of `word`, rounded up) to be what was meant. The first
/// of several equally near ones wins.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// The part of a message or hint ": did you mean X?", or "" when there is no near candidate.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Shortest decimal form that reads back as the same double, written as ECMAScript writes numbers:
/// "0.1", "100000", "1e-9", "1e+21"; negative zero is "-0". Non-finite values throw
/// std::logic_error.
std::string shortest(double value);

/// The whole text as a finite number, or nothing; no white space, no leading plus.
std::optional<double> to_double(std::string_view text);
std::optional<long long> to_integer(std::string_view text);

/// "3,880": groups of three, for people.
std::string grouped(long long value);

/// "1 subset", "3,880 records": nouns that take an s.
std::string counted(long long count, std::string_view noun);

/// "350 ms", "1.4 s", "2:05", "1:02:05": a duration for people; "unknown" when it is not finite.
std::string human_duration(double seconds);

/// Joins with a separator.
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace preval
