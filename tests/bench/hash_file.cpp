// Hashes one file as verify does, and nothing else: for scripts/bench.py, beside `openssl dgst`.
#include <iostream>

#include "base/sha256.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  preval::SystemFiles files;
  std::cout << preval::sha256_file(files, argv[1]) << '\n';
}
