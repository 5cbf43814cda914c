#include "cli/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "cli/exit_code.h"

namespace preval {

void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0 && nothing != stream) {
      dup2(nothing, stream);
      close(nothing);
    }
  }
}

int written(int code) {
  std::cout.flush();
  if (std::cout) return code;
  // The stream only knows that some write failed. One more write tells how.
  const ssize_t one = write(STDOUT_FILENO, "\n", 1);
  const int reason = one < 0 ? errno : EIO;
  if (reason == EPIPE) return code;
  std::cerr << "preval: standard output could not be written: " << std::strerror(reason) << '\n';
  return code != 0 ? code : exit_code(ErrorKind::io);
}

}  // namespace preval
