#pragma once
// The golden vectors of the study and the synthetic records that they describe.
#include <cmath>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/python_random.h"
#include "stats/scored_reads.h"
#include "stats/sums.h"

namespace preval::test {

inline Json study_vectors() {
  SystemFiles files;
  const std::string path = PREVAL_SOURCE_DIR "/tests/data/study-vectors.json";
  return parse_json(files.read(path), path);
}

/// Random(7); 144 times: five weights random()³ + 1e-9, normalised; gold = randrange(5).
inline ScoredReads synthetic144() {
  PythonRandom random(7);
  ScoredReads reads;
  for (int record = 0; record < 144; ++record) {
    std::vector<double> p(5);
    for (double& weight : p) weight = std::pow(random.uniform(), 3.0) + 1e-9;
    const double total = python_sum(p);
    for (double& weight : p) weight /= total;
    reads.add(p, random.below(5));
  }
  return reads;
}

}  // namespace preval::test
