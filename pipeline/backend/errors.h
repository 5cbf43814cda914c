#pragma once
// What servers say when they refuse. Every server has its own envelope, a proxy in between has
// HTML, and one server uses several: so there is one parser for all of them, and no protocol has
// its own.
#include <string>
#include <string_view>

namespace preval {

/// The words of an error reply.
struct ServerMessage {
  std::string text;  ///< one line, valid UTF-8, at most 300 bytes; empty when the body says nothing
  std::string type;  ///< the server's own class, "exceed_context_size_error"; may be empty
};

/// Understands {"error": {"message", "type" | "code"}}, {"error": "text"}, {"object": "error",
/// "message", "type"}, {"message"}, {"detail": "text"}, {"detail": {"error_type", "message"}},
/// {"detail":
/// [{"loc", "msg", "type"}]}, HTML (its title, else its text) and plain text.
ServerMessage server_message(std::string_view body);

}  // namespace preval
