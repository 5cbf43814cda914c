#include "script.h"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

namespace preval::test_server {

namespace {

struct Envelope {
  int status;
  const char* type;
  const char* body;
};

constexpr char kJson[] = "application/json";

/// As the servers have sent them; see the table of public failures, D8.
const std::map<std::string, Envelope>& envelopes() {
  static const std::map<std::string, Envelope> all{
      {"openai",
       {400, kJson,
        R"({"error":{"message":"The request is wrong.","type":"BadRequestError","param":null,"code":400}})"}},
      {"flat",
       {400, kJson,
        R"({"object":"error","message":"The request is wrong.","type":"BadRequestError","param":null,"code":400})"}},
      {"string-401", {401, kJson, R"({"error":"Unauthorized"})"}},
      {"pydantic",
       {400, kJson,
        R"({"object":"error","message":"[{'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required'}]","type":"BadRequestError","param":null,"code":400})"}},
      {"detail-list",
       {422, kJson,
        R"({"detail":[{"loc":["body","questions"],"msg":"Field required","type":"missing"}]})"}},
      {"detail-401",
       {401, kJson,
        R"({"detail":{"error_type":"authentication_error","message":"The key is not valid."}})"}},
      {"model-404",
       {404, kJson,
        R"({"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":"model","code":404}})"}},
      {"forbidden", {403, kJson, R"({"detail":"Forbidden"})"}},
      {"busy",
       {429, kJson,
        R"({"error":{"message":"Rate limit reached","type":"rate_limit_error","code":"rate_limit_exceeded"}})"}},
      {"loading",
       {503, kJson,
        R"({"error":{"message":"Loading model","type":"unavailable_error","code":503}})"}},
      {"overloaded", {529, kJson, R"({"detail":"Overloaded"})"}},
      {"ollama", {404, kJson, R"({"error":"model 'x' not found"})"}},
      {"nan",
       {500, kJson,
        R"({"error":{"message":"Out of range float values are not JSON compliant: nan","type":"InternalServerError","param":null,"code":500}})"}},
      {"list-index",
       {500, kJson,
        R"({"error":{"message":"list index out of range","type":"InternalServerError","param":null,"code":500}})"}},
      {"html-502",
       {502, "text/html",
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad "
        "Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"}},
      {"empty-500", {500, "text/plain", ""}},
  };
  return all;
}

const std::map<std::string, Ending>& endings() {
  static const std::map<std::string, Ending> all{{"reset", Ending::reset},
                                                 {"close", Ending::close},
                                                 {"stall", Ending::stall},
                                                 {"reset_after_header", Ending::reset_after_header},
                                                 {"close_after_header", Ending::close_after_header},
                                                 {"stall_after_header", Ending::stall_after_header},
                                                 {"partial", Ending::partial},
                                                 {"stall_in_body", Ending::stall_in_body}};
  return all;
}

const std::vector<std::string>& spoilings() {
  static const std::vector<std::string> all{
      "sentinel",    "lowest_float",   "duplicate_key", "nan",       "null_logprobs",
      "no_logprobs", "empty_logprobs", "longer_echo",   "wrong_ids", "text_keys"};
  return all;
}

using Take = std::function<void(const Json&)>;

void take_fields(const Json& json, const std::string& where,
                 const std::map<std::string, Take>& fields) {
  if (!json.is_object()) throw std::runtime_error(where + " is no object");
  for (const auto& [name, value] : json.items()) {
    const auto field = fields.find(name);
    if (field == fields.end()) throw std::runtime_error(where + " has no field " + name);
    try {
      field->second(value);
    } catch (const Json::exception& error) {
      throw std::runtime_error(where + "." + name + ": " + error.what());
    }
  }
}

template <class Value>
Take into(Value& target) {
  return [&target](const Json& value) { value.get_to(target); };
}

template <class Value>
Take into(std::optional<Value>& target) {
  return [&target](const Json& value) { target = value.get<Value>(); };
}

Deed parse_deed(const Json& json, const std::string& where) {
  Deed deed;
  const std::map<std::string, Take> fields{
      {"delay_s", into(deed.reply.delay_s)},
      {"status", into(deed.status)},
      {"content_type", into(deed.content_type)},
      {"body",
       [&](const Json& body) {
         deed.body = body.is_string() ? body.get<std::string>() : body.dump();
       }},
      {"raw", into(deed.reply.raw)},
      {"gzip", into(deed.reply.gzip)},
      {"chunked", into(deed.reply.chunked)},
      {"close", into(deed.reply.close)},
      {"headers",
       [&](const Json& headers) {
         for (const auto& [name, value] : headers.items()) {
           deed.reply.headers += name + ": " + value.get<std::string>() + "\r\n";
         }
       }},
      {"redirect",
       [&](const Json& to) {
         deed.status = 302;
         deed.body = "";
         deed.reply.headers += "Location: " + to.get<std::string>() + "\r\n";
       }},
      {"end",
       [&](const Json& how) {
         const auto ending = endings().find(how.get<std::string>());
         if (ending == endings().end())
           throw std::runtime_error(where + ": no ending " + how.dump());
         deed.reply.ending = ending->second;
       }},
      {"replace",
       [&](const Json& pairs) {
         for (const auto& [from, to] : pairs.items())
           deed.replace.emplace_back(from, to.get<std::string>());
       }},
      {"spoil",
       [&](const Json& name) {
         deed.spoil = name.get<std::string>();
         const auto& known = spoilings();
         if (std::find(known.begin(), known.end(), deed.spoil) == known.end()) {
           throw std::runtime_error(where + ": nothing known as " + deed.spoil);
         }
       }},
      {"envelope", [&](const Json& name) { put_envelope(name.get<std::string>(), deed); }},
      {"version", into(deed.version)},
      {"model", into(deed.model)}};
  take_fields(json, where, fields);
  return deed;
}

Rule parse_rule(const Json& json, const std::string& where) {
  Rule rule;
  take_fields(json, where,
              {{"path", into(rule.path)},
               {"method", into(rule.method)},
               {"containing", into(rule.containing)},
               {"nth", into(rule.nth)},
               {"from", into(rule.from)},
               {"to", into(rule.to)},
               {"every", into(rule.every)},
               {"do", [&](const Json& deed) { rule.deed = parse_deed(deed, where + ".do"); }}});
  if (rule.every < 1) throw std::runtime_error(where + ".every: at least 1");
  return rule;
}

bool matches(const Rule& rule, const Request& request) {
  if (!rule.path.empty() && rule.path != request.path) return false;
  if (!rule.method.empty() && rule.method != request.method) return false;
  return rule.containing.empty() || request.body.find(rule.containing) != std::string_view::npos ||
         request.head.find(rule.containing) != std::string_view::npos;
}

bool is_turn(const Rule& rule) {
  if (!rule.nth.empty()) {
    return std::find(rule.nth.begin(), rule.nth.end(), rule.seen) != rule.nth.end();
  }
  return rule.seen >= rule.from && (rule.to == 0 || rule.seen <= rule.to) &&
         (rule.seen - rule.from) % rule.every == 0;
}

}  // namespace

void put_envelope(const std::string& name, Deed& deed) {
  const auto found = envelopes().find(name);
  if (found == envelopes().end()) throw std::runtime_error("no envelope " + name);
  deed.status = found->second.status;
  deed.content_type = found->second.type;
  deed.body = found->second.body;
}

std::vector<std::string> envelope_names() {
  std::vector<std::string> names;
  for (const auto& [name, envelope] : envelopes()) names.push_back(name);
  return names;
}

const Deed* Script::deed_for(const Request& request) {
  const Deed* deed = nullptr;
  for (Rule& rule : rules) {
    if (!matches(rule, request)) continue;
    ++rule.seen;
    if (deed == nullptr && is_turn(rule)) deed = &rule.deed;
  }
  return deed;
}

Script parse_script(const Json& json) {
  Script script;
  take_fields(
      json, "script",
      {{"kind", into(script.kind)},
       {"model", into(script.model)},
       {"version", into(script.version)},
       {"key", into(script.key)},
       {"max_logprobs", into(script.max_logprobs)},
       {"max_ids", into(script.max_ids)},
       {"context", into(script.context)},
       {"by_id", into(script.by_id)},
       {"thinking", into(script.thinking)},
       {"port", into(script.listen.port)},
       {"idle_close_s", into(script.listen.idle_close_s)},
       {"listen_after_s", into(script.listen.listen_after_s)},
       {"rules", [&](const Json& rules) {
          for (std::size_t i = 0; i < rules.size(); ++i) {
            script.rules.push_back(parse_rule(rules[i], "rules[" + std::to_string(i) + "]"));
          }
        }}});
  return script;
}

}  // namespace preval::test_server
