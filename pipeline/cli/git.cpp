#include "cli/git.h"

#include <optional>
#include <string_view>

namespace preval {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

/// The folder with HEAD: .git itself, or where a worktree's .git file points.
std::optional<fs::path> git_folder(Files& files, fs::path folder) {
  while (true) {
    const fs::path git = folder / ".git";
    if (files.exists(git / "HEAD")) return git;
    if (files.exists(git) && !fs::is_directory(git)) {
      constexpr std::string_view prefix = "gitdir: ";
      const std::string line = first_line(files.read(git));
      if (line.starts_with(prefix)) return folder / line.substr(prefix.size());
    }
    if (folder == folder.parent_path()) return std::nullopt;
    folder = folder.parent_path();
  }
}

std::string packed_commit(const std::string& packed, const std::string& reference) {
  std::string_view rest = packed;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const std::size_t space = line.find(' ');
    if (space != std::string_view::npos && line.substr(space + 1) == reference) {
      return std::string(line.substr(0, space));
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return {};
}

}  // namespace

std::string git_commit_of(Files& files, const fs::path& folder) {
  const auto git = git_folder(files, fs::absolute(folder).lexically_normal());
  if (!git || !files.exists(*git / "HEAD")) return {};
  constexpr std::string_view prefix = "ref: ";
  std::string head = first_line(files.read(*git / "HEAD"));
  if (!head.starts_with(prefix)) return head;
  const std::string reference = head.substr(prefix.size());
  fs::path common = *git;
  if (files.exists(*git / "commondir")) common /= first_line(files.read(*git / "commondir"));
  if (files.exists(common / reference)) return first_line(files.read(common / reference));
  if (!files.exists(common / "packed-refs")) return {};
  return packed_commit(files.read(common / "packed-refs"), reference);
}

}  // namespace preval
