#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "report/wording.h"

namespace preval {

namespace {

/// Arms with records that were neither answered nor given up: --limit, or a run that has not ended.
std::vector<std::string> partly_asked(const ReportModel& model) {
  std::vector<std::string> arms;
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    const bool partial =
        std::any_of(model.groups.begin(), model.groups.end(), [&](const ReportGroup& group) {
          return std::any_of(group.arms[i].cells.begin(), group.arms[i].cells.end(),
                             [](const ReportCell& cell) { return cell.n_not_asked() > 0; });
        });
    if (partial) arms.push_back(model.arms[i].name);
  }
  return arms;
}

/// The shards that a store holds when it holds nothing but some of them: "1/4", "3/4".
std::vector<std::string> only_shards(const ReportModel& model) {
  std::set<std::pair<int, int>> found;  // of how many, which
  for (const ReportRun& run : model.runs) {
    if (run.exploratory != model.exploratory) continue;
    if (!run.shard && !run.record_limit) return {};
    if (!run.shard) continue;
    found.emplace(run.shard->of, run.shard->index);
  }
  std::map<int, int> count;
  std::vector<std::string> shards;
  for (const auto& [of, index] : found) {
    if (++count[of] == of) return {};
    shards.push_back(Shard{index, of}.text());
  }
  return shards;
}

std::vector<std::string> banners_of(const ReportModel& model) {
  std::vector<std::string> banners;
  if (model.simulated) {
    banners.push_back(
        "SIMULATED: no model answered. The answers were drawn at random; the figures show what "
        "this "
        "study would look like and say nothing about any model.");
  }
  if (model.exploratory) {
    banners.push_back(
        "EXPLORATORY: these answers are not part of the registered study; they were read with "
        "--exploratory.");
  }
  if (const std::vector<std::string> shards = only_shards(model); !shards.empty()) {
    banners.push_back(fmt::format(
        "SHARD {}: this store holds a part of the records. The others are read into stores of "
        "their own, and preval merge unites them.",
        list_of(shards)));
  }
  if (model.scored) {
    const std::vector<std::string> partial = partly_asked(model);
    if (!partial.empty()) {
      banners.push_back(fmt::format(
          "INCOMPLETE: not all records were asked on {}. Accuracy is over all registered records, "
          "and what was not asked counts as wrong in it.",
          list_of(partial)));
    }
  }
  if (model.scored && model.unscored > 0) {
    banners.push_back(fmt::format(
        "{} came after the last scoring and are not in these figures: preval score counts "
        "them in.",
        counted(model.unscored, "answer")));
  }
  return banners;
}

std::string subject_of(const ReportModel& model) {
  if (model.plan) return fmt::format("{} {}", model.plan->name, model.plan->version);
  return model.arms.empty() ? "Empty store" : "Imported answers";
}

std::string lead_of(const ReportModel& model) {
  if (model.plan) return model.plan->description;
  return model.arms.empty()
             ? "This store holds no plan and no answers yet: preval run PLAN fills it."
             : "";
}

/// The calls whose answers are shown, each once, in order. One that asked a part is followed by the
/// one that asked the rest, so all of them together are what has to be repeated.
std::vector<std::string> commands_of(const ReportModel& model) {
  std::vector<std::string> commands;
  for (const ReportRun& run : model.runs) {
    if (run.exploratory != model.exploratory) continue;
    if (std::find(commands.begin(), commands.end(), run.command) == commands.end()) {
      commands.push_back(run.command);
    }
  }
  return commands;
}

std::vector<std::string> plan_facts(const ReportPlan& plan) {
  std::vector<std::string> facts = {
      fmt::format("plan {} {}, by {}: sha256 {}", plan.name, plan.version, list_of(plan.authors),
                  plan.sha256),
      plan.locked_at ? "locked at " + *plan.locked_at : std::string("not locked"),
      "prompt file: sha256 " + plan.prompt_sha256};
  if (!plan.ledger_head.empty()) {
    facts.push_back(fmt::format("plan with its deviations: sha256 {}; head of the ledger {}",
                                plan.effective_sha256, plan.ledger_head));
  }
  return facts;
}

Table arm_facts(const ReportModel& model) {
  Table table;
  table.columns = {{"arm"}, {"checkpoint"}, {"backend"}, {"answered by"}, {"registered as"}};
  for (const ReportArm& arm : model.arms) {
    table.rows.push_back({{arm.name},
                          {join({arm.checkpoint_name, arm.weights_dtype, arm.revision}, " ")},
                          {fmt::format("{} ({}, {})", arm.backend, arm.kind, arm.read)},
                          {served_text(arm.identity)},
                          {arm.source == "imported" ? "imported"
                           : arm.confirmatory       ? "confirmatory"
                                                    : "exploratory"}});
  }
  return table;
}

Table run_facts(const ReportModel& model) {
  Table table;
  table.columns = {{"run", true}, {"started"}, {"ended"}, {"outcome"}, {"preval"}, {"machine"}};
  const bool any_shard = std::any_of(model.runs.begin(), model.runs.end(),
                                     [](const ReportRun& run) { return run.shard.has_value(); });
  if (any_shard) table.columns.push_back({"shard"});
  for (const ReportRun& run : model.runs) {
    const std::string version = run.git_commit.empty()
                                    ? run.tool_version
                                    : fmt::format("{} ({:.12})", run.tool_version, run.git_commit);
    table.rows.push_back({{std::to_string(run.id)},
                          {run.started_at},
                          {run.ended_at.empty() ? std::string(kNothing) : run.ended_at},
                          {(run.outcome.empty() ? "under way" : run.outcome) +
                           (run.exploratory ? ", exploratory" : "")},
                          {version},
                          {run.host}});
    if (any_shard) {
      table.rows.back().push_back({run.shard ? run.shard->text() : std::string("all")});
    }
  }
  return table;
}

/// "accuracy of a at least 0.6, on suite": what a hypothesis is decided by.
std::string claim_of(const ReportHypothesis& each) {
  const std::string arms = list_of(each.arms);
  std::string text;
  if (each.at_least) {
    text = fmt::format("{} of {} at least {}", each.metric, arms, shortest(*each.at_least));
  } else if (each.at_most) {
    text = fmt::format("{} of {} at most {}", each.metric, arms, shortest(*each.at_most));
  } else if (each.arms.empty()) {
    return each.metric;
  } else {
    const std::string other = each.arms.size() > 1 ? each.arms[1] : "the published figures";
    text = each.margin ? fmt::format("{} of {} and of {} within {}", each.metric, each.arms[0],
                                     other, shortest(*each.margin))
                       : fmt::format("{} of {} {} than of {}", each.metric, each.arms[0],
                                     each.direction, other);
  }
  text += ", on " + each.dataset;
  return each.subsets.empty() ? text : text + ": " + list_of(each.subsets);
}

}  // namespace

Section hypotheses_section(const ReportModel& model) {
  Section section{"Registered hypotheses", false, {}};
  if (model.hypotheses.empty()) {
    section.blocks.push_back(
        Paragraph{model.plan ? "The plan registers no hypotheses." : "There is no plan."});
    return section;
  }
  std::vector<std::string> items;
  for (std::size_t i = 0; i < model.hypotheses.size(); ++i) {
    const ReportHypothesis& each = model.hypotheses[i];
    const std::vector<int> changed = model.deviations_of(i);
    items.push_back(fmt::format(
        "{} ({}): {} [{}{}]", each.id, each.confirmatory ? "confirmatory" : "exploratory",
        each.statement, claim_of(each),
        changed.empty()
            ? ""
            : fmt::format("; not as registered: deviation {}", fmt::join(changed, ", "))));
  }
  section.blocks.push_back(Bullets{std::move(items)});
  section.blocks.push_back(Paragraph{
      "In brackets, what was registered to decide each. This report gives the figures, and no "
      "verdicts yet."});
  return section;
}

Section deviations_section(const ReportModel& model) {
  Section section{"Deviations", false, {}};
  if (model.deviations.empty()) {
    section.blocks.push_back(Paragraph{"None."});
  } else {
    Table table;
    table.columns = {{"no.", true}, {"at"}, {"field"}, {"registered"}, {"done"}, {"reason"}};
    for (const ReportDeviation& each : model.deviations) {
      table.rows.push_back({{std::to_string(each.number)},
                            {each.at},
                            {each.field},
                            {each.registered},
                            {each.done},
                            {each.why}});
    }
    section.blocks.push_back(std::move(table));
  }
  std::vector<std::string> drift;
  for (const ReportDrift& each : model.drift) {
    drift.push_back(each.predictions > 0
                        ? fmt::format("{} {}: {} ({})", each.kind, each.name, each.detail,
                                      counted(each.predictions, "answer"))
                        : fmt::format("{} {}: {}", each.kind, each.name, each.detail));
  }
  if (!drift.empty()) {
    if (model.deviations.empty()) {
      section.blocks.front() =
          Paragraph{"None was written down, but not everything is as it was registered:"};
    }
    section.blocks.push_back(Bullets{std::move(drift)});
  }
  return section;
}

Section caveats_section(const ReportModel& model) {
  Section section{"What these figures cannot show", false, {}};
  std::vector<std::string> items = {
      "Where a subset is a public test set, its records may have been in the training data of the "
      "checkpoints."};
  if (!model.published_model.empty()) {
    items.push_back(fmt::format(
        "The figures of {} are published ones; nobody measured them again for this report, and "
        "they were measured with prompts worded otherwise.",
        model.published_model));
  }
  items.push_back(
      "Answers depend on the wording of the prompt. One wording was registered and used; another "
      "one "
      "would give other figures.");
  section.blocks.push_back(Bullets{std::move(items)});
  return section;
}

Section provenance_section(const ReportModel& model) {
  Section section{"Provenance", true, {}};
  if (model.plan) section.blocks.push_back(Bullets{plan_facts(*model.plan)});
  if (!model.arms.empty()) section.blocks.push_back(arm_facts(model));
  if (!model.runs.empty()) section.blocks.push_back(run_facts(model));
  if (model.plan && !model.runs.empty()) {
    section.blocks.push_back(
        Paragraph{fmt::format("To reproduce: {}. PLAN is the plan with the digest above (of its "
                              "content; it stands in the plan's lock), with the data and "
                              "checkpoints whose digests it holds.",
                              join(commands_of(model), "; then "))});
  }
  if (section.blocks.empty()) section.blocks.push_back(Paragraph{"No plan, no runs."});
  return section;
}

Document build_document(const ReportModel& model) {
  Document document;
  document.title = subject_of(model);
  document.banners = banners_of(model);
  document.lead = lead_of(model);
  if (!model.plan && model.arms.empty()) return document;
  document.sections = {hypotheses_section(model), deviations_section(model),
                       accuracy_section(model),   published_section(model),
                       agreement_section(model),  calibration_section(model),
                       coverage_section(model),   completeness_section(model),
                       caveats_section(model),    provenance_section(model)};
  // Only plans that ask again have something to say there.
  if (Section again = stability_section(model); !again.blocks.empty()) {
    document.sections.insert(document.sections.end() - 3, std::move(again));
  }
  return document;
}

}  // namespace preval
