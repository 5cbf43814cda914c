#include "cli/git.h"

#include "catch.h"
#include "plan/memory_files.h"

using namespace preval;
using namespace preval::test;

namespace {
const std::string kCommit(40, 'c');
}

TEST_CASE("the commit is read from git's own files") {
  MemoryFiles files;
  CHECK(git_commit_of(files, "/no/such/repo").empty());

  files.content["/repo/.git/HEAD"] = "ref: refs/heads/main\n";
  CHECK(git_commit_of(files, "/repo/prereg").empty());  // a branch without a commit
  files.content["/repo/.git/refs/heads/main"] = kCommit + "\n";
  CHECK(git_commit_of(files, "/repo/prereg") == kCommit);
  CHECK(git_commit_of(files, "/repo") == kCommit);
  CHECK(git_commit_of(files, "/repo/a/../b/.") == kCommit);
  CHECK(git_commit_of(files, "/repository").empty());
}

TEST_CASE("a detached head, packed references and worktrees are followed") {
  MemoryFiles files;
  files.content["/repo/.git/HEAD"] = kCommit + "\n";
  CHECK(git_commit_of(files, "/repo") == kCommit);

  files.content["/repo/.git/HEAD"] = "ref: refs/heads/main\n";
  files.content["/repo/.git/packed-refs"] = "# pack-refs with: peeled\n" + std::string(40, 'b') +
                                            " refs/heads/other\n" + kCommit + " refs/heads/main\n";
  CHECK(git_commit_of(files, "/repo") == kCommit);

  files.content["/tree/.git"] = "gitdir: /repo/.git/worktrees/tree\n";
  files.content["/repo/.git/worktrees/tree/HEAD"] = "ref: refs/heads/other\n";
  files.content["/repo/.git/worktrees/tree/commondir"] = "../..\n";
  files.content["/repo/.git/worktrees/tree/../../packed-refs"] =
      files.content["/repo/.git/packed-refs"];
  CHECK(git_commit_of(files, "/tree/deep/down") == std::string(40, 'b'));
}
