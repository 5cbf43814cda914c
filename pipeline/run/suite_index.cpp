#include "run/suite_index.h"

namespace preval {

std::vector<std::string> variants_of(const DatasetGroup& group, QuestionType type) {
  std::vector<std::string> variants;
  for (const std::string& variant : group.variants) {
    if (variant == "none" || type == QuestionType::choice) variants.push_back(variant);
  }
  return variants;
}

SubsetIndex index_subset(Store& store, const Plan& plan, const PromptFile& wording,
                         const DatasetGroup& group, const Subset& subset,
                         const std::filesystem::path& path, const std::vector<Record>& records) {
  SubsetIndex index{&group, &subset, path, store.put_records(group.id, subset.id, records), {}};
  for (const std::string& variant : variants_of(group, subset.type)) {
    std::vector<std::int64_t>& prompts = index.prompts[variant];
    prompts.reserve(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Prompt prompt = render_prompt(wording, records[i], variant, plan.prompt.state_ascii);
      prompts.push_back(store.put_prompt(index.records[i], variant, prompt.sha256));
    }
  }
  return index;
}

}  // namespace preval
