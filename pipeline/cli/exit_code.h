#pragma once
// The one table from what went wrong to what the shell sees.
#include <string_view>

#include "base/error.h"

namespace preval {

inline constexpr std::string_view kExitCodes =
    "0 fine, 1 a check or the machine failed, 2 usage or plan, 3 drift,\n"
    "  4 incomplete (the same command goes on), 5 backend unavailable,\n"
    "  130 interrupted";

constexpr int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return 2;
    case ErrorKind::drift:
      return 3;
    case ErrorKind::incomplete:
      return 4;
    case ErrorKind::backend:
      return 5;
    case ErrorKind::interrupted:
      return 130;
    case ErrorKind::check:
    case ErrorKind::io:
      return 1;
  }
  return 1;
}

}  // namespace preval
