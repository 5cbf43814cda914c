#include "backend/dialogue.h"

#include "base/error.h"

namespace preval {

Failure unusable(std::string_view error_class, std::string message, const HttpReply& reply) {
  Failure failure;
  failure.error_class = error_class;
  failure.message = std::move(message);
  failure.http_status = reply.status;
  failure.body = reply.body;
  return failure;
}

std::variant<Json, Failure> json_of(const HttpReply& reply) {
  try {
    return parse_json(reply.body, "reply");
  } catch (const DuplicateKey& error) {
    return unusable("duplicate_key", error.what(), reply);
  } catch (const Error& error) {
    return unusable("invalid_json", error.what(), reply);
  }
}

const Json* value_of(const Json& json, std::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace preval
