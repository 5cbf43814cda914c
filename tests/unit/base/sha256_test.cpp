#include "base/sha256.h"

#include "base/error.h"
#include "base/file.h"
#include "catch.h"
#include "temporary_folder.h"
#include "thrown.h"

namespace preval {

TEST_CASE("SHA-256 of the examples of FIPS 180") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a digest by pieces equals the digest of the whole, and the object can be used again") {
  Sha256 hash;
  for (const char* piece : {"a", "", "bc"}) hash.update(piece);
  CHECK(hash.hex() == sha256_hex("abc"));
  CHECK(hash.hex() == sha256_hex(""));
  CHECK(hash.update("abc").hex() == sha256_hex("abc"));
}

TEST_CASE("a file is hashed over all of its blocks") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  std::string content(3 * 1024 * 1024 + 17, 'x');
  content[1024 * 1024] = '\0';
  files.replace(folder.path() / "big", content);
  CHECK(sha256_file(files, folder.path() / "big") == sha256_hex(content));
}

TEST_CASE("hashing a file ends within a block of being asked to stop") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  files.replace(folder.path() / "big", std::string(5 * 1024 * 1024, 'x'));
  for (const int blocks : {0, 1, 4}) {
    int asked = 0;
    const Error error = test::thrown(
        [&] { sha256_file(files, folder.path() / "big", [&] { return asked++ == blocks; }); });
    CHECK(error.kind() == ErrorKind::interrupted);
    CHECK(test::contains(error.what(), "stopped by the user while"));
    CHECK(test::contains(error.what(), "big was checked"));
    CHECK(asked == blocks + 1);
  }
  CHECK(sha256_file(files, folder.path() / "big", [] { return false; }) ==
        sha256_hex(std::string(5 * 1024 * 1024, 'x')));
}

}  // namespace preval
