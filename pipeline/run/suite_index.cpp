#include "run/suite_index.h"

#include <set>

namespace preval {

std::vector<std::string> variants_of(const DatasetGroup& group, QuestionType type) {
  std::vector<std::string> variants;
  for (const std::string& variant : group.variants) {
    if (variant == "none" || type == QuestionType::choice) variants.push_back(variant);
  }
  return variants;
}

std::optional<Record> first_record(Files& files, const SubsetIndex& index) {
  const std::string bytes = files.read(index.path);
  return RecordReader(bytes, index.subset->id, index.path.string(), [](const std::string&) {})
      .next();
}

SubsetIndex index_subset(Store& store, const Plan& plan, const PromptFile& wording,
                         const DatasetGroup& group, const Subset& subset,
                         const std::filesystem::path& path, const std::vector<Record>& records) {
  SubsetIndex index{&group, &subset, path, store.put_records(group.id, subset.id, records), {}};
  std::set<PromptForm> forms;
  for (const Arm& arm : plan.arms) forms.insert(prompt_form(plan.backend(arm.backend).read));
  for (const PromptForm form : forms) {
    for (const std::string& variant : variants_of(group, subset.type)) {
      std::vector<std::int64_t>& prompts = index.prompts[{form, variant}];
      prompts.reserve(records.size());
      for (std::size_t i = 0; i < records.size(); ++i) {
        const Prompt prompt = prompt_for(wording, plan.prompt, records[i], variant, form);
        prompts.push_back(store.put_prompt(index.records[i], variant, form, prompt.sha256));
      }
    }
  }
  return index;
}

}  // namespace preval
