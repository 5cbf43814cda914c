#pragma once
// The table of server protocols. A new server is one new file and one row in protocols.cpp.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace preval {

struct Protocol {
  std::string_view name;  ///< `kind` in plans
  std::vector<ReadMode> modes;
  std::unique_ptr<Backend> (*make)(const BackendSpec&, const Checkpoint&, const PromptSpec&);
  /// How many log-probabilities the probe asks for to be refused; 0: the protocol has no such list.
  int too_many_k = 0;
  /// How many ids the probe asks for to be refused; 0: the protocol knows no limit.
  int too_many_ids = 0;
  /// How far, relatively, an exact read and the widest top-k read may be apart.
  double agreement = 0;
  /// Whether log-probabilities are the model's own at any temperature. Where they are scaled, reads
  /// at 0 still are.
  bool raw_when_warm = true;
  int exchanges = 1;  ///< requests that a read usually takes, tokenising included: for estimates
};

const std::vector<Protocol>& protocols();
/// Nothing for a kind that is no protocol.
const Protocol* find_protocol(std::string_view kind);

}  // namespace preval
