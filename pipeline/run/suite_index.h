#pragma once
// Which reads the plan asks for: verified subsets, their records in the store, and one prompt per
// variant and form. Records themselves are read again, subset by subset, when they are asked:
// memory holds ids for the whole plan, and texts for one subset.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "read/prompt.h"
#include "store/store.h"
#include "suite/shard.h"
#include "suite/verify.h"

namespace preval {

struct SubsetIndex {
  const DatasetGroup* group = nullptr;
  const Subset* subset = nullptr;
  std::filesystem::path path;
  std::vector<std::int64_t> records;  ///< record.id by position
  TooWide too_wide;                   ///< of its records in the shard, for reads by token
  std::size_t smoke_end = 0;          ///< records before this position are smoke reads
  /// Form, variant → prompt.id by position; 0 where the record cannot be put in this form or is of
  /// another shard.
  std::map<std::pair<PromptForm, std::string>, std::vector<std::int64_t>> prompts;
};

/// The variants of a group that this question type has: `reversed` is for choice questions.
std::vector<std::string> variants_of(const DatasetGroup& group, QuestionType type);

/// What is not asked in this form, in words for people: "subset X: …"; empty when everything is. An
/// arm that reads so has no pending reads of these records.
std::string left_out(const SubsetIndex& index, PromptForm form);

/// The first record of a subset's file that can be asked in this form, or nothing when there is
/// none.
std::optional<Record> first_record(Files& files, const SubsetIndex& index, PromptForm form);

/// Renders every prompt of a subset, in the forms that the plan's arms ask for, and registers
/// records and prompts in the store: of a shard, where one is given, all records and its own
/// prompts. Records that cannot be put to a model by token (more than 26
/// alternatives) are a usage error that names them, when an arm reads by token.
SubsetIndex index_subset(Store& store, const Plan& plan, const PromptFile& wording,
                         const DatasetGroup& group, const Subset& subset,
                         const std::filesystem::path& path, const std::vector<Record>& records,
                         const std::optional<Shard>& shard);

}  // namespace preval
