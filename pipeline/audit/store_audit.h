#pragma once
// Has anything in a store changed since it was written? Every row of evidence against its own
// digest, all of them against the last seal, the seals against each other and the plan, and every
// score against one that is computed anew. Nothing is written.
#include "audit/audit.h"
#include "plan/lock.h"
#include "store/db.h"

namespace preval {

/// Audits a store that was opened read-only, and adds what it finds to `result`. A store of another
/// plan is not looked at, and named as unchecked.
void audit_store(Db& db, Files& files, const OpenPlan& plan, AuditResult& result);

/// The first line of a data file that is not the record the store has at its place, as
/// "line 17 (record boolq-17)"; empty when the store knows no records of that subset of this plan.
std::string first_changed_record(Db& db, const OpenPlan& plan, const std::string& dataset,
                                 const std::string& subset, std::string_view bytes);

}  // namespace preval
