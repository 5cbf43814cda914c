#pragma once
// From evidence to scores: reads the stored answers that count, computes what scoring asks for by
// way of stats/, and fills the score_* tables, all of them and in one transaction. Scores can be
// thrown away and made again at any time; nothing here changes evidence.
#include <string>

#include "base/clock.h"
#include "store/db.h"

namespace preval {

/// Recomputes every score of the store. Throws drift when stored answers cannot be what a run wrote
/// (a label too few, a probability that is no number), naming arm, subset and record.
void recompute_scores(Db& db, Clock& clock, const std::string& tool_version);

}  // namespace preval
