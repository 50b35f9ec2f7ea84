// A request to a status page, as far as the page needs to know it, and the form of an answer. HTTP/1.1 (RFC 9112),
// bodies are ignored. Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

struct HttpRequest {
  std::string method;         // "GET"
  std::string path;           // "/status", without the query
  std::string query;          // "token=abc", not decoded
  std::string host;           // of the header, in lower case, without the port: "localhost", "[::1]"; empty: none
  std::string authorization;  // of the header
};

// Parses what precedes the empty line. Nullopt: it is no request.
std::optional<HttpRequest> ParseHttpRequest(std::string_view head);

// Returns the value of `name` in a query; percent signs are decoded. Nullopt: it isn't there.
std::optional<std::string> QueryValue(std::string_view query, std::string_view name);

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

// Returns the answer's bytes. `with_body`: false for a HEAD request. The connection is closed after it.
std::string EncodeHttpAnswer(const HttpAnswer& answer, bool with_body);

}  // namespace muster
