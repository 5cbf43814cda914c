#include "backend/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/backend.h"
#include "base/error.h"
#include "base/text.h"

namespace preval {

namespace {

constexpr std::size_t kLongestText = 300;

/// One line of valid UTF-8: white space runs become one space, and what is no text is left out.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte != 0x7F) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    if (line.size() >= kLongestText) break;
  }
  if (const auto bad = invalid_utf8(line)) line.resize(*bad);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string first_of(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (std::string text = text_of(object, key); !text.empty()) return text;
  }
  return {};
}

ServerMessage of_object(const Json& object) {
  return {first_of(object, {"message", "msg"}), first_of(object, {"type", "error_type", "code"})};
}

/// {"loc": ["body", "prompt"], "msg": "field required"} → "body.prompt: field required".
ServerMessage of_validation(const Json& problems) {
  ServerMessage message;
  for (const Json& problem : problems) {
    if (!problem.is_object()) continue;
    std::vector<std::string> place;
    if (const auto loc = problem.find("loc"); loc != problem.end() && loc->is_array()) {
      for (const Json& step : *loc) {
        place.push_back(step.is_string() ? step.get<std::string>() : step.dump());
      }
    }
    const ServerMessage one = of_object(problem);
    if (!message.text.empty()) message.text += "; ";
    message.text += place.empty() ? one.text : fmt::format("{}: {}", join(place, "."), one.text);
    if (message.type.empty()) message.type = one.type;
  }
  return message;
}

ServerMessage of_json(const Json& json) {
  if (json.is_string()) return {json.get<std::string>(), {}};
  if (!json.is_object()) return {json.dump(-1, ' ', false, Json::error_handler_t::replace), {}};
  for (const char* key : {"error", "detail"}) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    if (found->is_string()) return {found->get<std::string>(), text_of(json, "type")};
    if (found->is_object()) return of_object(*found);
    if (found->is_array()) return of_validation(*found);
  }
  return of_object(json);
}

std::string without_tags(std::string_view html) {
  std::string text;
  bool in_tag = false;
  for (const char c : html) {
    if (c == '<') in_tag = true;
    if (!in_tag) text += c;
    if (c == '>') {
      in_tag = false;
      text += ' ';
    }
  }
  return text;
}

std::string of_html(std::string_view html) {
  constexpr std::string_view open = "<title>";
  const auto same_letter = [](char a, char b) { return (a | 0x20) == b || a == b; };
  const auto start = std::search(html.begin(), html.end(), open.begin(), open.end(), same_letter);
  if (start == html.end()) return without_tags(html);
  const auto from = static_cast<std::size_t>(start - html.begin()) + open.size();
  return std::string(html.substr(from, html.substr(from).find('<')));
}

/// What a status says about asking again, after the table of the specification: whatever is not
/// here is final.
struct StatusRule {
  long status;
  bool
      server;  ///< the server is in trouble, not busy or displeased: counts for the circuit breaker
};
constexpr std::array kWorthAnotherTry{
    StatusRule{408, false}, StatusRule{425, false}, StatusRule{429, false}, StatusRule{500, true},
    StatusRule{502, true},  StatusRule{503, true},  StatusRule{504, true},  StatusRule{529, true}};

Failure below_http(const HttpReply& reply) {
  Failure failure;
  failure.error_class = to_text(reply.transport);
  failure.message = reply.transport_message.empty() ? failure.error_class : reply.transport_message;
  failure.http_status = reply.status;
  failure.body = reply.body;
  failure.server = reply.transport != TransportStatus::too_large &&
                   reply.transport != TransportStatus::not_recorded;
  failure.retry = failure.server && reply.transport != TransportStatus::other;
  return failure;
}

/// "https://user@example.org:8443/login?next" → "example.org:8443"; a path stays on its host.
std::string host_of(std::string_view location) {
  const std::size_t scheme = location.find("//");
  if (scheme == std::string_view::npos) return "another path";
  std::string_view host = location.substr(scheme + 2);
  host = host.substr(0, host.find_first_of("/?#"));
  if (const std::size_t user = host.rfind('@'); user != std::string_view::npos) {
    host.remove_prefix(user + 1);
  }
  return one_line(host);
}

std::string class_of(const HttpReply& reply, const ServerMessage& said) {
  // llama.cpp by type, or by text where Ollama passes it on; vLLM; SGLang; Ollama; vLLM, when the
  // prompt fills the context exactly.
  constexpr std::string_view type = "exceed_context_size_error";
  for (const std::string_view words : {type, std::string_view("maximum context length"),
                                       std::string_view("longer than the model's context length"),
                                       std::string_view("input length exceeds the context length"),
                                       std::string_view("max_tokens must be at least 1, got 0")}) {
    if (said.type == type || said.text.find(words) != std::string::npos) return "context_exceeded";
  }
  if (reply.status == 500 && said.text.find("Out of range float values") != std::string::npos) {
    return "server_nan";
  }
  return "http_error";
}

}  // namespace

ServerMessage server_message(std::string_view body) {
  ServerMessage message;
  const std::size_t start = body.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return message;
  const char first = body[start];
  if (first == '<') {
    message.text = of_html(body);
  } else {
    try {
      // The strict reader: its depth has a limit, so that no server can exhaust the stack.
      message = of_json(parse_json(body, "error reply"));
    } catch (const Error&) {
      message.text = body;  // no JSON, or none that can be trusted: the words as they came
    }
  }
  message.text = one_line(message.text);
  message.type = one_line(message.type);
  return message;
}

std::optional<Failure> transport_failure(const HttpReply& reply) {
  if (reply.transport != TransportStatus::ok) return below_http(reply);
  Failure failure;
  failure.http_status = reply.status;
  failure.body = reply.body;
  if (reply.status == 200) {
    if (!reply.body.empty()) return std::nullopt;
    failure.error_class = "unexpected_reply";
    failure.message = "HTTP 200 without a body";
    return failure;
  }
  const ServerMessage said = server_message(reply.body);
  failure.error_class = class_of(reply, said);
  failure.message =
      fmt::format("HTTP {}{}{}", reply.status, said.text.empty() ? "" : ": ", said.text);
  if (!reply.location.empty()) {
    failure.message = fmt::format("HTTP {}: redirected to {}, which is not followed", reply.status,
                                  host_of(reply.location));
  }
  const auto rule =
      std::find_if(kWorthAnotherTry.begin(), kWorthAnotherTry.end(),
                   [&](const StatusRule& entry) { return entry.status == reply.status; });
  failure.retry = rule != kWorthAnotherTry.end() && failure.error_class == "http_error";
  // A prompt that is too long says nothing about the server, whatever status it comes with.
  failure.server =
      rule != kWorthAnotherTry.end() && rule->server && failure.error_class != "context_exceeded";
  return failure;
}

}  // namespace preval
