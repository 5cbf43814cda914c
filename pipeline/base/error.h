#pragma once
// One error type for the whole pipeline. It is thrown where the facts are known
// (file, line, record, JSON pointer) and turned into an exit code in cli/ only.
#include <stdexcept>
#include <string>
#include <utility>

namespace preval {

/// What went wrong, as far as a caller or an exit code needs to know.
enum class ErrorKind {
  check,        ///< a check or gate failed: exit code 1
  usage,        ///< command line, configuration or plan: exit code 2
  drift,        ///< bytes or values differ from what was registered: exit code 3
  incomplete,   ///< something is missing and can be resumed: exit code 4
  backend,      ///< a server that did not start, died, or does not answer: exit code 5
  io,           ///< the machine refused: disk full, no permission, torn file: exit code 1
  interrupted,  ///< the user stopped the program: exit code 130
};

/// The one exception of the pipeline. The message says what happened; the hint says what to do.
/// what() is the message up to its first NUL, should it hold one.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string hint = {})
      : std::runtime_error(message), kind_(kind), message_(message), hint_(std::move(hint)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string message_, hint_;
};

}  // namespace preval
