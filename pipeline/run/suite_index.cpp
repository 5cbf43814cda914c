#include "run/suite_index.h"

#include <fmt/format.h>

#include <set>

namespace preval {

namespace {

/// A record that says itself which model shall answer is a failure of its own when it is read.
bool can_be_asked(const Record& record, PromptForm form) {
  return form == PromptForm::native ? !record.input.contains("model") : !is_too_wide(record);
}

/// One past the last of the first `count` records of the shard.
std::size_t end_of_first(int count, const std::vector<Record>& records,
                         const std::optional<Shard>& shard) {
  std::size_t end = 0;
  for (; count > 0 && end < records.size(); ++end) {
    if (!shard || shard->holds(records[end].sha256)) --count;
  }
  return end;
}

}  // namespace

std::vector<std::string> variants_of(const DatasetGroup& group, QuestionType type) {
  std::vector<std::string> variants;
  for (const std::string& variant : group.variants) {
    if (variant == "none" || type == QuestionType::choice) variants.push_back(variant);
  }
  return variants;
}

std::string left_out(const SubsetIndex& index, PromptForm form) {
  if (form == PromptForm::native || index.too_wide.records == 0) return {};
  return fmt::format("subset {}: {}: not read by this arm", index.subset->id,
                     in_words(index.too_wide));
}

std::optional<Record> first_record(Files& files, const SubsetIndex& index, PromptForm form) {
  const std::string bytes = files.read(index.path);
  RecordReader reader(bytes, index.subset->id, index.path.string(), [](const std::string&) {});
  std::optional<Record> record;
  do {
    record = reader.next();
  } while (record && !can_be_asked(*record, form));
  return record;
}

SubsetIndex index_subset(Store& store, const Plan& plan, const PromptFile& wording,
                         const DatasetGroup& group, const Subset& subset,
                         const std::filesystem::path& path, const std::vector<Record>& records,
                         const std::optional<Shard>& shard) {
  const auto is_ours = [&](const Record& record) { return !shard || shard->holds(record.sha256); };
  SubsetIndex index{&group, &subset, path, store.put_records(group.id, subset.id, records),
                    {},     {},      {}};
  index.smoke_end = end_of_first(group.smoke.records, records, shard);
  for (const Record& record : records) {
    if (is_ours(record)) index.too_wide.count(record);
  }
  std::set<PromptForm> forms;
  for (const Arm& arm : plan.arms) forms.insert(prompt_form(plan.backend(arm.backend).read));
  for (const PromptForm form : forms) {
    for (const std::string& variant : variants_of(group, subset.type)) {
      std::vector<std::int64_t>& prompts = index.prompts[{form, variant}];
      prompts.reserve(records.size());
      for (std::size_t i = 0; i < records.size(); ++i) {
        if (!is_ours(records[i]) || (form != PromptForm::native && is_too_wide(records[i]))) {
          prompts.push_back(0);
          continue;
        }
        const Prompt prompt = prompt_for(wording, plan.prompt, records[i], variant, form);
        prompts.push_back(store.put_prompt(index.records[i], variant, form, prompt.sha256));
      }
    }
  }
  return index;
}

}  // namespace preval
