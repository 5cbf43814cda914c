#include "plan/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace preval {
namespace {

class ReferenceChecker {
 public:
  ReferenceChecker(const Plan& plan, const std::string& where) : plan_(plan), where_(where) {}

  void check() const {
    check_ids("/hypotheses", plan_.hypotheses);
    check_ids("/datasets", plan_.datasets);
    check_ids("/checkpoints", plan_.checkpoints);
    check_ids("/backends", plan_.backends);
    check_ids("/arms", plan_.arms);
    check_subset_ids();
    for (std::size_t i = 0; i < plan_.arms.size(); ++i) check_arm(i);
    for (std::size_t i = 0; i < plan_.hypotheses.size(); ++i) check_hypothesis(i);
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& reason,
                         const std::string& hint = {}) const {
    throw Error(ErrorKind::usage, fmt::format("{}: {}: {}", where_, pointer, reason), hint);
  }

  template <class T>
  static std::vector<std::string> ids(const std::vector<T>& items) {
    std::vector<std::string> result;
    result.reserve(items.size());
    for (const T& item : items) result.push_back(item.id);
    return result;
  }

  template <class T>
  void check_ids(const std::string& list, const std::vector<T>& items) const {
    std::map<std::string, std::size_t> first;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto [seen, is_new] = first.emplace(items[i].id, i);
      if (is_new) continue;
      fail(fmt::format("{}/{}/id", list, i),
           fmt::format("\"{}\" is already the id of {}/{}", items[i].id, list, seen->second));
    }
  }

  void check_subset_ids() const {
    std::map<std::string, std::string> first;
    for (std::size_t g = 0; g < plan_.datasets.size(); ++g) {
      const auto& subsets = plan_.datasets[g].subsets;
      for (std::size_t s = 0; s < subsets.size(); ++s) {
        const std::string pointer = fmt::format("/datasets/{}/subsets/{}", g, s);
        const auto [seen, is_new] = first.emplace(subsets[s].id, pointer);
        if (is_new) continue;
        fail(pointer + "/id",
             fmt::format("\"{}\" is already the id of {}", subsets[s].id, seen->second));
      }
    }
  }

  void check_known(const std::string& pointer, std::string_view what, const std::string& id,
                   const std::vector<std::string>& known) const {
    if (std::find(known.begin(), known.end(), id) != known.end()) return;
    fail(pointer, fmt::format("there is no {} \"{}\"{}", what, id, did_you_mean(id, known)),
         known.empty() ? "the plan has none" : "there are: " + join(known, ", "));
  }

  void check_arm(std::size_t index) const {
    const Arm& arm = plan_.arms[index];
    const std::string pointer = fmt::format("/arms/{}", index);
    check_known(pointer + "/checkpoint", "checkpoint", arm.checkpoint, ids(plan_.checkpoints));
    check_known(pointer + "/backend", "backend", arm.backend, ids(plan_.backends));
    for (std::size_t i = 0; i < index; ++i) {
      if (plan_.arms[i].checkpoint != arm.checkpoint || plan_.arms[i].backend != arm.backend)
        continue;
      fail(pointer,
           fmt::format("\"{}\" is the same checkpoint on the same backend as \"{}\"", arm.id,
                       plan_.arms[i].id),
           "to ask the same thing several times, set \"repeats\"");
    }
    const auto& server = plan_.backend(arm.backend).server;
    if (!server || !plan_.checkpoint(arm.checkpoint).files.empty()) return;
    for (const std::string& word : server->command) {
      if (word.find("{checkpoint}") == std::string::npos) continue;
      fail(pointer + "/checkpoint",
           fmt::format("backend \"{}\" wants a {{checkpoint}} file, and \"{}\" has no files",
                       arm.backend, arm.checkpoint));
    }
  }

  void check_hypothesis(std::size_t index) const {
    const Hypothesis& hypothesis = plan_.hypotheses[index];
    const std::string pointer = fmt::format("/hypotheses/{}", index);
    for (std::size_t i = 0; i < hypothesis.arms.size(); ++i) {
      const std::string place = fmt::format("{}/arms/{}", pointer, i);
      check_known(place, "arm", hypothesis.arms[i], ids(plan_.arms));
      if (hypothesis.confirmatory && !plan_.arm(hypothesis.arms[i]).confirmatory) {
        fail(place,
             fmt::format("a confirmatory hypothesis cannot rest on the exploratory arm \"{}\"",
                         hypothesis.arms[i]));
      }
    }
    if (hypothesis.arms.size() == 2 && hypothesis.arms[0] == hypothesis.arms[1]) {
      fail(pointer + "/arms", fmt::format("\"{}\" is compared with itself", hypothesis.arms[0]));
    }
    check_known(pointer + "/dataset", "dataset", hypothesis.dataset, ids(plan_.datasets));
    const auto group =
        std::find_if(plan_.datasets.begin(), plan_.datasets.end(),
                     [&](const auto& item) { return item.id == hypothesis.dataset; });
    for (std::size_t i = 0; i < hypothesis.subsets.size(); ++i) {
      check_known(fmt::format("{}/subsets/{}", pointer, i),
                  fmt::format("subset of dataset \"{}\" called", group->id), hypothesis.subsets[i],
                  ids(group->subsets));
    }
    if (hypothesis.kind != "bound") check_comparison(pointer, hypothesis);
  }

  void check_comparison(const std::string& pointer, const Hypothesis& hypothesis) const {
    if (hypothesis.kind == "equivalence" && !hypothesis.margin &&
        !plan_.margins.contains(hypothesis.metric)) {
      fail(pointer + "/margin",
           fmt::format("an equivalence needs a margin, here or under /margins/{}",
                       hypothesis.metric));
    }
    if (hypothesis.arms.size() == 2) return;
    if (!plan_.published) {
      fail(pointer + "/arms",
           "one arm alone is compared with published figures, and the plan names none",
           "add a second arm, or \"published\"");
    }
    const std::vector<std::string> published{"accuracy", "ece10", "brier"};
    if (std::find(published.begin(), published.end(), hypothesis.metric) == published.end()) {
      fail(pointer + "/metric", fmt::format("{} is not among published figures", hypothesis.metric),
           "published are: " + join(published, ", "));
    }
  }

  const Plan& plan_;
  const std::string& where_;
};

}  // namespace

void check_references(const Plan& plan, const std::string& where) {
  ReferenceChecker(plan, where).check();
}

}  // namespace preval
