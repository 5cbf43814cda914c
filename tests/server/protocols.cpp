#include "protocols.h"

#include <stdexcept>

#include "protocol_base.h"

namespace preval::test_server {

namespace {

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  if (what.empty()) return;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

/// The bearer key that came along.
std::string_view key_of(const Request& request) {
  static constexpr std::string_view name = "Authorization: Bearer ";
  const std::size_t at = request.head.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = request.head.substr(at + name.size());
  return rest.substr(0, rest.find('\r'));
}

/// What a deed leaves of the answer.
void apply(const Deed& deed, const Request& request, Reply& reply) {
  if (deed.status) reply.status = *deed.status;
  if (deed.content_type) reply.content_type = *deed.content_type;
  if (deed.body) reply.body = *deed.body;
  for (const auto& [from, to] : deed.replace) replace_all(reply.body, from, to);
  reply.headers = deed.reply.headers;
  reply.raw = deed.reply.raw;
  reply.delay_s = deed.reply.delay_s;
  reply.ending = deed.reply.ending;
  reply.chunked = deed.reply.chunked;
  reply.gzip = deed.reply.gzip;
  reply.close = deed.reply.close;
  // A server that repeats what it was sent.
  for (std::string* text : {&reply.body, &reply.headers, &reply.raw}) {
    replace_all(*text, "{key}", key_of(request));
  }
}

}  // namespace

std::unique_ptr<Protocol> make_protocol(const Script& script) {
  if (script.kind == "vllm") return make_vllm(script);
  if (script.kind == "sglang") return make_sglang(script);
  if (script.kind == "llamacpp") return make_llamacpp(script);
  if (script.kind == "openai-chat") return make_openai_chat(script);
  if (script.kind == "ollama") return make_ollama(script);
  if (script.kind == "systemone") return make_systemone(script);
  throw std::runtime_error("no protocol of kind " + script.kind);
}

Service::Service(Script script, Seen seen)
    : script_(std::move(script)),
      seen_(std::move(seen)),
      protocol_(make_protocol(script_)),
      http_(script_.listen,
            [this](const Request& request, Reply& reply) { handle(request, reply); }) {}

void Service::handle(const Request& request, Reply& reply) {
  ++requests_;
  if (seen_) seen_(request);
  const Deed* deed = script_.rules.empty() ? nullptr : script_.deed_for(request);
  if (deed != nullptr) {
    if (deed->version) script_.version = *deed->version;
    if (deed->model) script_.model = *deed->model;
  }
  if (!script_.key.empty() && key_of(request) != script_.key && request.path != "/health") {
    reply.status = 401;
    reply.body = R"({"error":"Unauthorized"})";
    return;
  }
  static const std::string nothing;
  if (deed == nullptr || (!deed->body && deed->reply.raw.empty())) {
    try {
      protocol_->answer(request, deed == nullptr ? nothing : deed->spoil, reply);
    } catch (const Json::exception& error) {
      reply.status = 400;
      reply.body = Json{{"error", {{"message", error.what()}, {"type", "BadRequestError"}}}}.dump();
    }
  }
  if (deed != nullptr) apply(*deed, request, reply);
}

}  // namespace preval::test_server
