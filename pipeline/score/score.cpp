#include "score/score.h"

#include <array>
#include <map>
#include <set>

#include "score/comparison.h"
#include "score/evidence.h"
#include "score/score_tables.h"
#include "stats/summary.h"

namespace preval {

namespace {

constexpr std::array<std::string_view, 4> kScopes = {"all", "noul", "choice", "score"};

bool is_in(const ScoredSubset& subset, std::string_view scope) {
  return scope == "all" || scope == to_text(subset.type);
}

/// Values of the subsets with answers, for medians.
struct SubsetValues {
  std::size_t n = 0;
  std::vector<double> ece, ece_after, brier, nll, label_mass;

  void add(const AccuracyScore& accuracy, const CalibrationScore& calibration) {
    if (calibration.n == 0) return;
    ++n;
    const auto keep = [](std::vector<double>& values, std::optional<double> value) {
      if (value) values.push_back(*value);
    };
    keep(ece, calibration.ece);
    keep(brier, calibration.brier);
    keep(nll, calibration.nll);
    keep(label_mass, accuracy.label_mass);
    if (calibration.after) ece_after.push_back(calibration.after->mean_ece);
  }

  /// A median over some of the subsets would pass for one over all of them.
  std::optional<double> median_of(const std::vector<double>& values) const {
    return values.size() == n ? upper_median(values) : std::nullopt;
  }
};

/// Everything of one dataset group, subset by subset: no group is pooled with another.
class GroupScorer {
 public:
  GroupScorer(Db& db, ScoreTables& tables, const std::vector<ScoredArm>& arms,
              const std::vector<PublishedSubset>& published, const CalibrationSpec& spec, int kind,
              std::string dataset)
      : db_(db),
        tables_(tables),
        arms_(arms),
        published_(published),
        spec_(spec),
        kind_(kind),
        dataset_(std::move(dataset)),
        unreadable_(read_unreadable(db, dataset_)),
        sums_(arms.size()) {
    for (ArmSums& sums : sums_) {
      for (const std::string_view scope : kScopes) {
        sums.accuracy.emplace_back(std::string(scope));
        sums.published.emplace_back(std::string(scope));
      }
    }
  }

  void add(const ScoredSubset& subset) {
    ++of_subsets_;
    suite_ = subset.scoring == ScoringProfile::suite;
    answers_.assign(arms_.size(), {});
    for (std::size_t i = 0; i < arms_.size(); ++i) score_cell(i, subset);
    if (subset.verified) compare_arms(subset);
  }

  void finish() {
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      for (const PooledPublished& pool : sums_[i].published) {
        if (const auto score = pool.pooled()) tables_.put(arms_[i].id, dataset_, *score);
      }
      if (!arms_[i].started) continue;
      for (const PooledAccuracy& pool : sums_[i].accuracy) {
        if (const auto score = pool.pooled()) tables_.put(arms_[i].id, dataset_, *score);
      }
      if (const auto score = sums_[i].accuracy[0].macro())
        tables_.put(arms_[i].id, dataset_, *score);
      const SubsetValues& values = sums_[i].values;
      if (suite_) {
        tables_.put(arms_[i].id, dataset_,
                    {values.n, of_subsets_, values.median_of(values.ece),
                     values.median_of(values.ece_after), values.median_of(values.brier),
                     values.median_of(values.nll), values.median_of(values.label_mass)});
      }
    }
    for (const auto& [pair, scopes] : agreement_) {
      for (std::size_t s = 0; s < kScopes.size(); ++s) {
        if (scopes[s]) {
          tables_.put(arms_[pair.first], arms_[pair.second], dataset_, "pooled",
                      std::string(kScopes[s]), *scopes[s]);
        }
      }
    }
  }

 private:
  struct ArmSums {
    std::vector<PooledAccuracy> accuracy;    // one per scope
    std::vector<PooledPublished> published;  // one per scope
    SubsetValues values;
  };
  using Pair = std::pair<std::size_t, std::size_t>;

  void score_cell(std::size_t i, const ScoredSubset& subset) {
    const ScoredArm& arm = arms_[i];
    const bool readable = !unreadable_.contains({arm.name, subset.name});
    const bool measured = arm.started && subset.verified && readable;
    Cell cell;
    if (measured) cell = read_cell(db_, arm, subset, kind_);
    const AccuracyScore accuracy = score_accuracy(cell, subset);
    std::optional<double> our_ece;
    if (measured) {
      const CalibrationScore calibration = score_calibration(cell, subset.scoring, spec_);
      our_ece = calibration.ece;
      tables_.put(arm.id, dataset_, accuracy);
      tables_.put(arm.id, dataset_, subset.name, calibration);
      if (const auto bounds = score_bounds(cell, calibration))
        tables_.put(arm.id, dataset_, subset.name, *bounds);
      sums_[i].values.add(accuracy, calibration);
    }
    for (std::size_t s = 0; s < kScopes.size(); ++s) {
      if (!is_in(subset, kScopes[s])) continue;
      if (subset.verified && readable) {
        sums_[i].accuracy[s].add(accuracy);
      } else {
        sums_[i].accuracy[s].add_unmeasured();
      }
    }
    if (suite_) compare_with_published(i, subset, accuracy, our_ece);
    answers_[i] = {std::move(cell.records), std::move(cell.predicted)};
  }

  void compare_with_published(std::size_t i, const ScoredSubset& subset,
                              const AccuracyScore& accuracy, std::optional<double> our_ece) {
    for (const PublishedSubset& figure : published_) {
      if (figure.subset != subset.name) continue;
      const std::string why_not =
          why_not_comparable(figure, arms_[i], subset, accuracy.n_answered,
                             not_asked(arms_[i], subset, accuracy.n_answered));
      tables_.put(arms_[i].id, dataset_, compare_published(figure, accuracy, our_ece, why_not));
      for (std::size_t s = 0; s < kScopes.size(); ++s) {
        if (is_in(subset, kScopes[s])) sums_[i].published[s].add(figure, accuracy, why_not);
      }
    }
  }

  /// Complete cells, which most are, need no look at the evidence.
  std::size_t not_asked(const ScoredArm& arm, const ScoredSubset& subset, std::size_t n_answered) {
    if (n_answered == subset.n_registered) return 0;
    if (!not_asked_) not_asked_ = read_not_asked(db_, dataset_);
    const auto found = not_asked_->find({arm.name, subset.name});
    return found == not_asked_->end() ? 0 : found->second;
  }

  void compare_arms(const ScoredSubset& subset) {
    for (std::size_t a = 0; a < arms_.size(); ++a) {
      for (std::size_t b = a + 1; b < arms_.size(); ++b) {
        if (!arms_[a].started || !arms_[b].started) continue;
        const Agreement agreement = compare_answers(answers_[a], answers_[b]);
        tables_.put(arms_[a], arms_[b], dataset_, "subset", subset.name, agreement);
        auto& scopes = agreement_[{a, b}];
        for (std::size_t s = 0; s < kScopes.size(); ++s) {
          if (!is_in(subset, kScopes[s])) continue;
          if (!scopes[s]) scopes[s].emplace();
          scopes[s]->n += agreement.n;
          scopes[s]->same += agreement.same;
        }
      }
    }
  }

  Db& db_;
  ScoreTables& tables_;
  const std::vector<ScoredArm>& arms_;
  const std::vector<PublishedSubset>& published_;
  const CalibrationSpec& spec_;
  int kind_;
  std::string dataset_;
  std::set<std::pair<std::string, std::string>> unreadable_;  // arm, subset
  bool suite_ = false;
  std::size_t of_subsets_ = 0;
  std::vector<ArmSums> sums_;
  std::vector<CellAnswers> answers_;  // of the subset at hand, one per arm
  std::optional<std::map<std::pair<std::string, std::string>, std::size_t>> not_asked_;
  std::map<Pair, std::array<std::optional<Agreement>, kScopes.size()>> agreement_;
};

}  // namespace

void recompute_scores(Db& db, Clock& clock, const std::string& tool_version) {
  Tx tx(db);
  const std::vector<ScoredArm> arms = read_arms(db);
  const std::vector<ScoredSubset> subsets = read_subsets(db);
  const std::vector<PublishedSubset> published = read_published(db);
  const CalibrationSpec spec = read_calibration_spec(db);
  const int kind = counted_kind(db);

  ScoreTables tables(db);
  tables.clear();
  for (std::size_t i = 0; i < subsets.size();) {
    GroupScorer group(db, tables, arms, published, spec, kind, subsets[i].dataset);
    const std::string& dataset = subsets[i].dataset;
    for (; i < subsets.size() && subsets[i].dataset == dataset; ++i) group.add(subsets[i]);
    group.finish();
  }
  tables.put_scored(utc_text(clock.now()), tool_version);
  tx.commit();
}

}  // namespace preval
