#pragma once
// The error that a call throws, for tests that look at its kind, message and hint.
#include "base/error.h"
#include "catch.h"

namespace preval::test {

template <class Call>
Error thrown(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return Error(ErrorKind::check, "");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace preval::test
