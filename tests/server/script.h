#pragma once
// What a test wants to go wrong, and when. README.md describes the JSON form.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http.h"

namespace preval::test_server {

using Json = nlohmann::ordered_json;

/// What is done to the answer that a request would get.
struct Deed {
  Reply reply;  ///< ending, delay, encodings, and more header lines
  std::optional<int> status;
  std::optional<std::string> body, content_type;
  std::vector<std::pair<std::string, std::string>> replace;  ///< in the body, every occurrence
  std::string spoil;                          ///< name of a way to spoil a read's numbers
  std::optional<std::string> version, model;  ///< what the server says it is from now on
};

struct Rule {
  std::string path, method, containing;  ///< empty: any. `containing`: in header or body
  std::vector<long> nth;                 ///< which of the matching requests, from 1; empty: all
  long from = 1, to = 0;                 ///< 0: no end
  long every = 1;
  Deed deed;
  long seen = 0;
};

/// The facts of a server, and its rules.
struct Script {
  std::string kind = "vllm", model = "test-model", version = "1.0.0";
  std::string key;  ///< requests without it are refused with 401; empty: none is asked for
  int max_logprobs = 32, max_ids = 128, context = 2048;
  bool by_id = true;     ///< whether reads by id are understood; they are ignored otherwise
  bool thinking = true;  ///< whether the chat template knows enable_thinking
  HttpServer::Options listen;
  std::vector<Rule> rules;

  /// The first rule that applies to this request, which counts in every rule that it matches.
  const Deed* deed_for(const Request& request);
};

/// Throws std::runtime_error that names what is wrong, unknown fields included.
Script parse_script(const Json& json);

/// Status, type and body of a named error envelope. Throws std::runtime_error for unknown names.
void put_envelope(const std::string& name, Deed& deed);

/// Every name that put_envelope knows.
std::vector<std::string> envelope_names();

}  // namespace preval::test_server
