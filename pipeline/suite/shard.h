#pragma once
// Several machines share the records of a plan without talking to each other: which shard a record
// belongs to follows from its own bytes. All variants and repeats of a record go with it.
#include <string>
#include <string_view>

namespace preval {

inline constexpr int kMostShards = 1000;

/// Part `index` of `of`, counted from 1.
struct Shard {
  int index = 1, of = 1;

  /// A record belongs to shard 1 + (the first 8 bytes of its SHA-256, the most significant first,
  /// modulo `of`). Takes the digest in hexadecimal; digits after the first 16 are not looked at.
  bool holds(std::string_view record_sha256) const;
  std::string text() const;  ///< "1/4"
  auto operator<=>(const Shard&) const = default;
};

/// "1/4" as a shard. Throws usage for anything but I/N with 1 <= I <= N <= 1000.
Shard parse_shard(std::string_view text);

}  // namespace preval
