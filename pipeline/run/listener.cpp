#include "run/listener.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"

namespace preval {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// "socket:[INODE]" of every socket that listens on the port, as links in /proc name it.
std::set<std::string> listening_sockets(int port) {
  constexpr std::size_t local_address = 1, state = 3, inode = 9;
  constexpr const char* listen_state = "0A";
  const std::string wanted = fmt::format(":{:04X}", port);
  std::set<std::string> sockets;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> words = words_of(line);
      if (words.size() <= inode || words[state] != listen_state) continue;
      if (words[local_address].size() < wanted.size() ||
          words[local_address].substr(words[local_address].size() - wanted.size()) != wanted) {
        continue;
      }
      sockets.insert(fmt::format("socket:[{}]", words[inode]));
    }
  }
  return sockets;
}

/// Process group from /proc/PID/stat: the third field behind the command, which may hold anything.
bool is_in_group(const fs::path& process, int group) {
  std::ifstream stream(process / "stat");
  std::string text;
  std::getline(stream, text);
  const std::size_t command_end = text.rfind(')');
  if (command_end == std::string::npos) return false;
  const std::vector<std::string> words = words_of(text.substr(command_end + 1));
  return words.size() > 2 && to_integer(words[2]) == group;
}

bool holds_one_of(const fs::path& process, const std::set<std::string>& sockets) {
  // Processes end while one looks at them: what cannot be read is not there any more.
  std::error_code gone;
  for (fs::directory_iterator at(process / "fd", gone), end; !gone && at != end;
       at.increment(gone)) {
    std::error_code closed;
    if (sockets.contains(fs::read_symlink(at->path(), closed).string())) return true;
  }
  return false;
}

}  // namespace

Listener who_listens(int port, int group) {
  const std::set<std::string> sockets = listening_sockets(port);
  if (sockets.empty()) return Listener::cannot_tell;
  std::error_code unreadable;
  for (fs::directory_iterator at("/proc", unreadable), end; !unreadable && at != end;
       at.increment(unreadable)) {
    if (!to_integer(at->path().filename().string())) continue;
    if (is_in_group(at->path(), group) && holds_one_of(at->path(), sockets))
      return Listener::of_group;
  }
  return unreadable ? Listener::cannot_tell : Listener::somebody_else;
}

}  // namespace preval
