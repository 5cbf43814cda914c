#pragma once
// What servers tell of themselves under addresses that not every server has. A hosted interface
// lists its models and nothing else; one model behind a small server may list none. So an answer of
// "there is no such thing here" is an answer, and everything else is treated as always.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/backend.h"

namespace preval {

/// The JSON of a reply; nothing when the server has no such address (404, 405, 501) or what it has
/// there is no JSON.
std::variant<std::optional<Json>, Failure> optional_json_of(const HttpReply& reply);

/// One model of GET /v1/models, in the form that OpenAI has given it.
struct ListedModel {
  std::string id;
  std::string owner;           ///< "vllm", "llamacpp", an organisation; may be empty
  std::string root;            ///< what the name stands for (vLLM); may be empty
  std::optional<int> context;  ///< tokens, where the server tells (vLLM, SGLang)
};

std::vector<ListedModel> listed_models(const Json& reply);

/// Why nobody can tell which of the models is meant where none was named: they stand for different
/// things. Empty when one of them is named `planned`, or all of them are one model.
std::string ambiguous_model(const std::vector<ListedModel>& models, const std::string& planned);

/// What may be told of the name that a server has for its model: all of it when the plan published
/// it, else without the folders of a local path, which say where a machine keeps its weights.
std::string public_name(const std::string& served, const std::string& planned);

/// `path` ("/v1/models") on a server whose address is its root, or ends in /v1, as clients of this
/// interface have it.
std::string api_path(std::string_view base_url, std::string_view path);

}  // namespace preval
