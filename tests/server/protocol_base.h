#pragma once
// What the protocols share: the model, the script's facts, and how numbers are spoilt.
#include <limits>

#include "protocols.h"
#include "scan.h"

namespace preval::test_server {

/// The k best tokens of a reply, or the tokens asked for, with whatever is to be wrong with them.
struct Numbers {
  enum class Field { there, null, absent, empty } field = Field::there;
  std::vector<Entry> entries;
  bool longer_echo = false, text_keys = false;

  void spoil(const std::string& how) {
    if (how.empty()) return;
    if (how == "null_logprobs") field = Field::null;
    if (how == "no_logprobs") field = Field::absent;
    if (how == "empty_logprobs") field = Field::empty;
    if (how == "longer_echo") longer_echo = true;
    if (how == "text_keys") text_keys = true;
    if (how == "sentinel") entries = {{0, -9999.0}};
    if (how == "wrong_ids") entries = {{358, -0.1}};
    if (how == "duplicate_key" && !entries.empty()) entries.push_back(entries.front());
    if (how == "nan" && !entries.empty()) {
      entries.back().second = std::numeric_limits<double>::quiet_NaN();
    }
    if (how == "lowest_float") {
      for (Entry& entry : entries) entry.second = -3.4028234663852886e38;
    }
  }
};

/// A number as JSON has it, and NaN as Python writes it, which no JSON parser takes.
inline void append_real(std::string& text, double value) {
  if (value != value) {
    text += "NaN";
  } else {
    append(text, value);
  }
}

inline void append_quoted(std::string& out, std::string_view text) {
  out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

class BaseProtocol : public Protocol {
 public:
  explicit BaseProtocol(const Script& script) : script_(script) {}

 protected:
  static bool is(const Request& request, std::string_view method, std::string_view path) {
    return request.method == method && request.path == path;
  }
  static void error(Reply& reply, int status, const Json& body) {
    reply.status = status;
    reply.body = body.dump();
  }
  static void not_found(Reply& reply) { error(reply, 404, {{"detail", "Not Found"}}); }
  static void openai_error(Reply& reply, int status, const std::string& message,
                           const std::string& type = "BadRequestError") {
    error(
        reply, status,
        {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", status}}}});
  }

  /// Messages in a chat template; the last one stays open when the assistant's.
  std::string chat(const Json& request) const {
    std::string text;
    for (const Json& message : request.at("messages")) {
      text += "<|im_start|>" + message.at("role").get<std::string>() + "\n" +
              message.at("content").get<std::string>();
      if (message.at("role") == "assistant") return text;
      text += "<|im_end|>\n";
    }
    text += "<|im_start|>assistant\n";
    const Json::json_pointer switch_("/chat_template_kwargs/enable_thinking");
    if (script_.thinking && request.contains(switch_) && !request[switch_].get<bool>()) {
      text += "<|no_think|>\n";
    }
    return text;
  }

  const Script& script_;
  Tokenizer tokenizer_;
  std::vector<Id> prompt_, ids_;
  Numbers numbers_;
};

std::unique_ptr<Protocol> make_vllm(const Script& script);
std::unique_ptr<Protocol> make_sglang(const Script& script);
std::unique_ptr<Protocol> make_llamacpp(const Script& script);
std::unique_ptr<Protocol> make_openai_chat(const Script& script);
std::unique_ptr<Protocol> make_ollama(const Script& script);
std::unique_ptr<Protocol> make_systemone(const Script& script);

}  // namespace preval::test_server
