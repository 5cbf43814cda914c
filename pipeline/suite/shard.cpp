#include "suite/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"

namespace preval {

bool Shard::holds(std::string_view record_sha256) const {
  const std::string_view head = record_sha256.substr(0, 16);
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(head.data(), head.data() + head.size(), value, 16);
  if (head.size() != 16 || problem != std::errc() || end != head.data() + head.size()) {
    throw std::logic_error(fmt::format("'{}' begins no digest", head));
  }
  return 1 + value % static_cast<std::uint64_t>(of) == static_cast<std::uint64_t>(index);
}

std::string Shard::text() const { return fmt::format("{}/{}", index, of); }

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto number = [&](std::string_view part) {
    const bool digits =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    return digits ? to_integer(part) : std::nullopt;
  };
  const auto index = number(text.substr(0, slash));
  const auto of = slash == std::string_view::npos ? std::nullopt : number(text.substr(slash + 1));
  if (!index || !of) {
    throw Error(ErrorKind::usage, fmt::format("--shard {}: a shard is I/N, such as 1/4", text),
                "1/4 to 4/4 are the four parts that four machines read");
  }
  if (*of < 1 || *of > kMostShards) {
    throw Error(ErrorKind::usage,
                fmt::format("--shard {}: there can be 1 to {} shards", text, kMostShards));
  }
  if (*index < 1 || *index > *of) {
    throw Error(
        ErrorKind::usage,
        fmt::format("--shard {0}: of {1} shards there is none number {2}", text, *of, *index),
        fmt::format("they are numbered from 1/{0} to {0}/{0}", *of));
  }
  return {static_cast<int>(*index), static_cast<int>(*of)};
}

}  // namespace preval
