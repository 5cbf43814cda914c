#pragma once
// Errors are part of what users get, so tests look at kind and words.
#include <optional>
#include <string>

#include "base/error.h"
#include "catch.h"

namespace preval::test {

/// What `action` throws, as "message | hint"; fails when it throws nothing or another kind.
template <class Action>
std::string error_of(ErrorKind kind, Action&& action) {
  std::optional<Error> caught;
  try {
    action();
  } catch (const Error& error) {
    caught = error;
  }
  REQUIRE(caught.has_value());
  CHECK(static_cast<int>(caught->kind()) == static_cast<int>(kind));
  return std::string(caught->what()) + " | " + caught->hint();
}

/// Fails, showing both, unless the text holds the fragment.
inline void check_contains(const std::string& text, const std::string& fragment) {
  INFO("text: " << text);
  INFO("expected in it: " << fragment);
  CHECK(text.find(fragment) != std::string::npos);
}

}  // namespace preval::test
