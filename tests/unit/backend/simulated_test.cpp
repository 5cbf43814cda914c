#include "backend/simulated.h"

#include <cmath>
#include <stdexcept>

#include "backend/dialogues.h"
#include "backend/probe.h"

using namespace preval;

namespace {

BackendSpec spec(Simulation simulation, ReadMode mode = ReadMode::exact) {
  BackendSpec spec;
  spec.id = "sim";
  spec.kind = "simulated";
  spec.read = mode;
  spec.k = 8;
  spec.simulation = simulation;
  return spec;
}

Checkpoint checkpoint(std::string id = "tiny") {
  Checkpoint checkpoint;
  checkpoint.id = std::move(id);
  return checkpoint;
}

struct Asked {
  Record record;
  Prompt prompt;
  Item item(std::string_view variant = "none", int repeat = 0) const {
    return {&record, &prompt, variant, repeat};
  }
};

Asked asked(int number, int count = 4, bool reversed = false) {
  Asked asked;
  asked.record.id = "r" + std::to_string(number);
  asked.record.subset = "s";
  asked.record.target = number % count;
  asked.prompt.lead = "decision: ";
  for (int i = 0; i < count; ++i) {
    asked.record.question.alternatives.push_back({std::string(1, static_cast<char>('a' + i)), ""});
    asked.prompt.labels.emplace_back(1, static_cast<char>('A' + i));
    asked.prompt.options.push_back(reversed ? count - 1 - i : i);
  }
  return asked;
}

Answer answer(const Simulated& backend, const Asked& asked, std::string_view variant = "none",
              int repeat = 0) {
  const Item item = asked.item(variant, repeat);
  const auto none = [](const HttpRequest&) -> HttpReply { throw std::logic_error("asked"); };
  const TokenPrompt tokens =
      test::converse_with<TokenPrompt>(*backend.tokenise(item), none).result();
  REQUIRE(tokens.labels.size() == asked.prompt.labels.size());
  return test::converse_with<Answer>(*backend.read(item, tokens, {}), none).result();
}

int predicted_option(const Asked& asked, const Answer& answer) {
  return asked.prompt.options[static_cast<std::size_t>(answer.distribution.predicted)];
}

struct Totals {
  double accuracy = 0, confidence = 0;
};

Totals totals(const Simulated& backend, int count, int records = 1500) {
  Totals totals;
  for (int i = 0; i < records; ++i) {
    const Asked one = asked(i, count);
    const Answer read = answer(backend, one);
    totals.accuracy += predicted_option(one, read) == one.record.target;
    totals.confidence +=
        read.distribution.labels[static_cast<std::size_t>(read.distribution.predicted)].probability;
  }
  totals.accuracy /= records;
  totals.confidence /= records;
  return totals;
}

}  // namespace

TEST_CASE("accuracy and miscalibration are those of the plan") {
  const int count = GENERATE(2, 4, 18);
  INFO(count);
  for (const double accuracy : {0.6, 0.75, 0.95}) {
    INFO(accuracy);
    const Totals calibrated =
        totals(Simulated(spec({accuracy, 1.0, 0, 1}), checkpoint(), {}), count);
    CHECK(calibrated.accuracy == Approx(accuracy).margin(0.03));
    CHECK(calibrated.confidence == Approx(accuracy).margin(0.03));
    const Totals sharp =
        totals(Simulated(spec({accuracy, 3.0, 0, 1}), checkpoint(), {}), count, 600);
    CHECK(sharp.confidence > calibrated.confidence + 0.02);
    const Totals dull =
        totals(Simulated(spec({accuracy, 0.5, 0, 1}), checkpoint(), {}), count, 600);
    CHECK(dull.confidence < calibrated.confidence - 0.02);
  }
}

TEST_CASE("extremes: always right, all but always wrong, at chance") {
  CHECK(totals(Simulated(spec({1.0, 2.0, 0, 1}), checkpoint(), {}), 4, 500).accuracy == 1.0);
  CHECK(totals(Simulated(spec({0.0, 2.0, 0, 1}), checkpoint(), {}), 4, 500).accuracy <= 0.02);
  CHECK(totals(Simulated(spec({0.5, 1.0, 0, 1}), checkpoint(), {}), 2).accuracy ==
        Approx(0.5).margin(0.03));
  // Sharpness beyond what doubles could hold as powers.
  const Answer answered = answer(Simulated(spec({0.99, 500, 0, 1}), checkpoint(), {}), asked(1));
  for (const auto& label : answered.distribution.labels) CHECK(std::isfinite(label.logprob));
}

TEST_CASE("simulated labels never have more probability together than there is") {
  const Simulated one(spec({0.99, 3.0, 0, 1}), checkpoint(), {});
  for (int i = 0; i < 500; ++i) CHECK(answer(one, asked(i)).distribution.label_mass <= 1);
}

TEST_CASE("the same seed gives the same bits, another seed another answer") {
  const Simulated one(spec({0.75, 2.0, 0, 1}), checkpoint(), {});
  const Asked record = asked(3);
  const Answer read = answer(one, record);
  // Computed by CPython from the description in backend/simulated.h.
  const std::vector<double> expected{-7.730763818027059, -8.705074515397481, -8.15689131336184,
                                     -0.6087338824358699};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(read.distribution.labels[i].logprob == Approx(expected[i]).epsilon(1e-14));
  }
  CHECK(answer(one, record).distribution.labels[0].logprob == read.distribution.labels[0].logprob);
  const Simulated other(spec({0.75, 2.0, 0, 2}), checkpoint(), {});
  CHECK(answer(other, record).distribution.labels[0].logprob !=
        read.distribution.labels[0].logprob);
}

TEST_CASE("backends, variants and repeats of a checkpoint agree but for a jitter") {
  const Simulated exact(spec({0.75, 2.0, 0, 1}), checkpoint(), {});
  BackendSpec second = spec({0.75, 2.0, 0, 1});
  second.id = "sim-2";
  const Simulated again(second, checkpoint(), {});
  int same_backend = 0, same_repeat = 0, same_reversed = 0;
  for (int i = 0; i < 300; ++i) {
    const Asked forward = asked(i), backward = asked(i, 4, true);
    const int base = predicted_option(forward, answer(exact, forward));
    same_backend += base == predicted_option(forward, answer(again, forward));
    same_repeat += base == predicted_option(forward, answer(exact, forward, "none", 1));
    same_reversed += base == predicted_option(backward, answer(exact, backward, "reversed"));
    CHECK(answer(exact, forward).distribution.labels[0].logprob !=
          answer(exact, forward, "none", 1).distribution.labels[0].logprob);
  }
  CHECK(same_backend >= 290);
  CHECK(same_repeat >= 290);
  CHECK(same_reversed >= 290);
  const Asked one = asked(5);
  CHECK(answer(Simulated(spec({0.75, 2.0, 0, 1}), checkpoint("other"), {}), one)
            .distribution.label_mass != answer(exact, one).distribution.label_mass);
}

TEST_CASE("top-k: a share of the labels is outside the k best, the lowest first") {
  const Simulated backend(spec({0.75, 2.0, 0.4, 1}, ReadMode::top_k), checkpoint(), {});
  int absent = 0, labels = 0;
  for (int i = 0; i < 500; ++i) {
    const Answer read = answer(backend, asked(i, 6));
    const Distribution& distribution = read.distribution;
    REQUIRE(distribution.labels_returned >= 1);
    REQUIRE(distribution.floor);
    double lowest_returned = 0;
    for (const auto& label : distribution.labels) {
      if (label.source == LabelSource::top)
        lowest_returned = std::min(lowest_returned, label.logprob);
    }
    CHECK(*distribution.bound <= lowest_returned);
    absent += 6 - distribution.labels_returned;
    labels += 5;
  }
  CHECK(static_cast<double>(absent) / labels == Approx(0.4).margin(0.03));
  const Simulated all(spec({0.75, 2.0, 0, 1}, ReadMode::top_k), checkpoint(), {});
  CHECK(answer(all, asked(1, 6)).distribution.labels_returned == 6);
}

TEST_CASE("every read mode says where its values come from") {
  const auto source = [](ReadMode mode) {
    return answer(Simulated(spec({0.75, 2.0, 0, 1}, mode), checkpoint(), {}), asked(1))
        .distribution.labels[0]
        .source;
  };
  CHECK(source(ReadMode::exact) == LabelSource::exact);
  CHECK(source(ReadMode::top_k) == LabelSource::top);
  CHECK(source(ReadMode::text_top_k) == LabelSource::text);
  CHECK(source(ReadMode::native) == LabelSource::native);
}

TEST_CASE("identity and probe say that nothing is real") {
  const Simulated backend(spec({0.75, 2.0, 0.1, 7}), checkpoint(), {});
  const auto none = [](const HttpRequest&) { return HttpReply{}; };
  const auto identity = test::converse_with<Identity>(*backend.identify(), none).result();
  CHECK(identity.facts == Json{{"engine", "simulated"},
                               {"accuracy", 0.75},
                               {"sharpness", 2.0},
                               {"missing", 0.1},
                               {"seed", 7}});
  const Asked one = asked(1);
  const Ask nobody = [](HttpRequest) -> HttpReply { throw std::logic_error("nobody to ask"); };
  const ProbeResult found =
      probe(spec({0.75, 2.0, 0.1, 7}), checkpoint(), {}, {one.item()}, ProbeFor::plan, nobody);
  for (const Finding& finding : found.findings) CHECK(finding.ok);
  CHECK(found.findings.front().verdict == "simulated");
  CHECK_FALSE(found.broke);
  CHECK(backend.health().path.empty());
  const auto dialogue = backend.identify();
  CHECK_THROWS_AS(dialogue->reply({}), std::logic_error);
}
