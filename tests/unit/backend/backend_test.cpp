#include "backend/backend.h"

#include "base/error.h"
#include "catch.h"

using namespace preval;

namespace {

BackendSpec spec(std::string kind, ReadMode mode) {
  BackendSpec spec;
  spec.id = "b1";
  spec.kind = std::move(kind);
  spec.read = mode;
  spec.k = 4;
  return spec;
}

std::string problem(const BackendSpec& wanted) {
  try {
    make_backend(wanted, {}, {});
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::usage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "none";
}

}  // namespace

TEST_CASE("every kind is made for every mode that it can read in") {
  for (const ReadMode mode : {ReadMode::exact, ReadMode::top_k}) {
    CHECK(make_backend(spec("llamacpp", mode), {}, {})->health().path == "/health");
  }
  for (const ReadMode mode :
       {ReadMode::exact, ReadMode::top_k, ReadMode::text_top_k, ReadMode::native}) {
    CHECK(make_backend(spec("simulated", mode), {}, {}) != nullptr);
  }
}

TEST_CASE("unknown kinds and impossible modes are usage errors that say what there is") {
  CHECK(problem(spec("lamacpp", ReadMode::exact)) ==
        "backend b1: unknown kind \"lamacpp\": did you mean llamacpp? | known kinds: llamacpp, "
        "vllm, sglang, openai-chat, ollama, systemone, simulated");
  CHECK(problem(spec("", ReadMode::exact)).find("unknown kind \"\"") != std::string::npos);
  CHECK(problem(spec("llamacpp", ReadMode::native)) ==
        "backend b1: kind llamacpp cannot read in mode native | kind llamacpp reads: exact, top-k");
}
