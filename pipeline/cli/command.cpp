#include "cli/command.h"

#include <unistd.h>

#include <cstdlib>

namespace preval {

std::string help_footer(std::initializer_list<std::string_view> examples,
                        std::string_view exit_codes) {
  std::string text = "Examples:\n";
  for (const std::string_view example : examples) text.append("  ").append(example).append("\n");
  text.append("\nEvery command takes --db FILE, --color WHEN, -q and -v.\n");
  return text.append("\nExit codes: ").append(exit_codes);
}

bool use_color(const Context& context, int fd) {
  if (context.color != "auto") return context.color == "always";
  if (const char* none = std::getenv("NO_COLOR"); none != nullptr && *none != '\0') return false;
  if (const char* force = std::getenv("CLICOLOR_FORCE");
      force != nullptr && *force != '\0' && std::string_view(force) != "0") {
    return true;
  }
  const char* terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  return isatty(fd) == 1;
}

}  // namespace preval
