#pragma once
// Which commit a plan was locked at. Git's own files say so, so that no git has to be installed.
#include <filesystem>
#include <string>

#include "base/file.h"

namespace preval {

/// The commit that is checked out in the repository around `folder`, 40 or 64 hexadecimal digits,
/// or
/// "" when there is none. Worktrees and packed references are followed; changes that are not
/// committed are not looked for.
std::string git_commit_of(Files& files, const std::filesystem::path& folder);

}  // namespace preval
