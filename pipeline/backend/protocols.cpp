#include "backend/protocols.h"

#include <algorithm>

#include "backend/llamacpp.h"
#include "backend/ollama.h"
#include "backend/openai_chat.h"
#include "backend/sglang.h"
#include "backend/simulated.h"
#include "backend/systemone.h"
#include "backend/vllm.h"

namespace preval {

namespace {

/// Fifty times what interfaces by text allow, and still no large reply from one that allows it.
constexpr int kTooManyByText = 1000;
/// Eight times what vLLM allows.
constexpr int kTooManyIds = 1024;
/// SGLang has no limit: more than the vocabulary would end it, and more than this a disaggregated
/// one. So the probe asks for what every one can give.
constexpr int kSafeForSglang = 128;

template <class Self>
std::unique_ptr<Backend> make(const BackendSpec& spec, const Checkpoint& checkpoint,
                              const PromptSpec& prompt) {
  return std::make_unique<Self>(spec, checkpoint, prompt);
}

}  // namespace

const std::vector<Protocol>& protocols() {
  using enum ReadMode;
  // Agreement: one slot of llama.cpp computes the same numbers every time; the others batch, and
  // take prefixes from a cache, which costs digits of bf16.
  static const std::vector<Protocol> table{
      {"llamacpp", {exact, top_k}, make<LlamaCpp>, kWholeVocabulary, 0, 1e-4, true, 4},
      {"vllm", {exact, top_k}, make<Vllm>, kWholeVocabulary, kTooManyIds, 0.05, true, 2},
      {"sglang", {exact, top_k}, make<Sglang>, kSafeForSglang, kTooManyIds, 0.05, false, 2},
      {"openai-chat", {text_top_k}, make<OpenAiChat>, kTooManyByText, 0, 1e-2},
      {"ollama", {text_top_k}, make<Ollama>, kTooManyByText, 0, 1e-2},
      {"systemone", {native}, make<SystemOne>, 0, 0, 0.1},
      {"simulated", {exact, top_k, text_top_k, native}, make<Simulated>, 0, 0, 0},
  };
  return table;
}

const Protocol* find_protocol(std::string_view kind) {
  const std::vector<Protocol>& table = protocols();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Protocol& each) { return each.name == kind; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace preval
