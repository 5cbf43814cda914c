#pragma once
// Answers without a model, for rehearsals and tests: seeded, the same on every machine, and with
// the properties that reports are about: an accuracy, a miscalibration, and labels outside the k
// best.
//
// Draws, all from base/python_random.h, in this order:
//   1. Random(first 8 bytes, big-endian, of SHA-256("SEED/CHECKPOINT/SUBSET/RECORD")), shared by
//   all
//      backends, variants and repeats of a checkpoint, which therefore agree about most records:
//      a. u: confidence c = a + (2u - 1) * s, with a = accuracy, but at least 1/K + 0.01 and at
//      most
//         1 - 1e-6, and s = 0.9 * min(1 - a, a - 1/K), for K alternatives; so 1/K < c < 1 and c is
//         a on average;
//      b. v: the predicted alternative is the target when v < c (when v < accuracy, if that is
//      below
//         1/K), else
//      c. below(K - 1) chooses among the others;
//      d. one u per alternative that is not predicted, which spreads the remaining 1 - c unevenly;
//      e. u: label mass m = exp(-0.02) (0.5 + 0.5 u).
//   2. Random(… of the same text + "/BACKEND/VARIANT/REPEAT"):
//      a. one u per alternative: a jitter of (2u - 1) * 0.02 nats;
//      b. top-k reads: one u per label but the best; as many as are < `missing` of the lowest
//      labels
//         are outside the k best.
// Log-probabilities are ln(m p_i^sharpness / Σ p_j^sharpness) plus jitter: with sharpness 1 the
// confidence is the chance of being right, above 1 it is too high, below 1 too low.
#include <memory>

#include "backend/backend.h"

namespace preval {

class Simulated final : public Backend {
 public:
  Simulated(BackendSpec spec, Checkpoint checkpoint, const PromptSpec&)
      : spec_(std::move(spec)), checkpoint_(std::move(checkpoint)) {}

  std::unique_ptr<Dialogue<Identity>> identify() const override;
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const override;
  std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                         const Sampling& sampling) const override;
  HttpRequest health() const override;
  HttpRequest nonsense() const override;

 private:
  Answer answer(const Item& item) const;

  BackendSpec spec_;
  Checkpoint checkpoint_;
};

}  // namespace preval
