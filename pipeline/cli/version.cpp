#include "cli/version.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "build_info.h"
#include "store/store.h"

namespace preval {

std::string tool_version() { return PREVAL_VERSION; }

std::string build_commit() {
  std::string commit = build::kCommit;
  if (!commit.empty() && build::kDirty) commit += "-dirty";
  return commit;
}

std::string version_text() {
  const std::string commit = build_commit();
  return fmt::format(
      "preval {}\n"
      "commit {}\n"
      "schema {}\n"
      "SQLite {}\n"
      "libcurl {}\n"
      "{}",
      tool_version(), commit.empty() ? "unknown" : commit, kSchemaVersion, sqlite3_libversion(),
      curl_version_info(CURLVERSION_NOW)->version, OpenSSL_version(OPENSSL_VERSION));
}

std::string host_text() {
  std::string processor = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      processor = line.substr(colon + 2);
      break;
    }
  }
  utsname system{};
  uname(&system);
  return fmt::format("{}, {} cores, {} {} {}", processor, std::thread::hardware_concurrency(),
                     system.sysname, system.release, system.machine);
}

}  // namespace preval
