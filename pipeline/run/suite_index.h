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
#include "suite/verify.h"

namespace preval {

struct SubsetIndex {
  const DatasetGroup* group = nullptr;
  const Subset* subset = nullptr;
  std::filesystem::path path;
  std::vector<std::int64_t> records;  ///< record.id by position
  /// Form, variant → prompt.id by position.
  std::map<std::pair<PromptForm, std::string>, std::vector<std::int64_t>> prompts;
};

/// The variants of a group that this question type has: `reversed` is for choice questions.
std::vector<std::string> variants_of(const DatasetGroup& group, QuestionType type);

/// The first record of a subset's file, or nothing when it has none.
std::optional<Record> first_record(Files& files, const SubsetIndex& index);

/// Renders every prompt of a subset, in the forms that the plan's arms ask for, and registers
/// records and prompts in the store. Records that cannot be put to a model by token (more than 26
/// alternatives) are a usage error that names them, when an arm reads by token.
SubsetIndex index_subset(Store& store, const Plan& plan, const PromptFile& wording,
                         const DatasetGroup& group, const Subset& subset,
                         const std::filesystem::path& path, const std::vector<Record>& records);

}  // namespace preval
