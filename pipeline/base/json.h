#pragma once
// JSON as the pipeline needs it: strict reading (duplicate keys, invalid UTF-8 and anything after
// the value are errors with a line number), RFC 8785 canonical form for digests, and Python's
// rendering for prompts. `Json` keeps the order of insertion, because the order of a question's
// alternatives is part of the question.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace preval {

using Json = nlohmann::ordered_json;

/// A key that stands twice in one object: some readers would take the first, some the last.
class DuplicateKey final : public Error {
  using Error::Error;
};

/// Parses exactly one JSON value. Throws `Error` (usage) that begins with `where` ("plan.json") and
/// names line and column; duplicate keys are a DuplicateKey that names the key. A UTF-8 byte order
/// mark is refused: callers that tolerate one strip it first. `first_line` is the number of the
/// text's first line, for values that stand inside a line file. At most 256 levels of nesting.
Json parse_json(std::string_view text, std::string_view where, int first_line = 1);

/// RFC 8785 (JSON Canonicalization Scheme): keys sorted by UTF-16 code units, numbers as ECMAScript
/// prints them, no white space. Integers beyond 2^53 and non-finite numbers are errors (usage),
/// since RFC 8785 has no exact form for them.
std::string canonical_json(const Json& value);

/// SHA-256 of the canonical form, hexadecimal.
std::string canonical_sha256(const Json& value);

/// Python's json.dumps(value) with `", "` and `": "`: floats as repr() prints them; with
/// `ascii_only` everything outside ASCII as \uXXXX (surrogate pairs beyond the BMP), as
/// ensure_ascii=True does.
std::string python_json(const Json& value, bool ascii_only);

/// repr() of a Python float: shortest round-trip form, exponent form as Python chooses it.
std::string python_float(double value);

}  // namespace preval
