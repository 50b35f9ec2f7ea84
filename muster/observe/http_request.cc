#include "muster/observe/http_request.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"

namespace muster {
namespace {

std::string_view Stripped(std::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(AbslView(text));
  return {stripped.data(), stripped.size()};
}

// Takes a line off the front of `text`.
std::string_view TakeHttpLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// "localhost" of "LocalHost:9100", "[::1]" of "[::1]:9100".
std::string HostWithoutPort(std::string_view value) {
  const size_t name_end = value.starts_with('[') ? value.find(']') : 0;
  const size_t colon = name_end == std::string_view::npos ? name_end : value.find(':', name_end);
  return absl::AsciiStrToLower(AbslView(value.substr(0, colon)));
}

std::string_view HttpReason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

std::optional<HttpRequest> ParseHttpRequest(std::string_view head) {
  const std::string_view first = TakeHttpLine(head);
  const size_t method_end = first.find(' ');
  if (method_end == std::string_view::npos) return std::nullopt;
  const size_t target_end = first.find(' ', method_end + 1);
  if (target_end == std::string_view::npos || !first.substr(target_end + 1).starts_with("HTTP/1.")) return std::nullopt;
  HttpRequest request;
  request.method = std::string(first.substr(0, method_end));
  const std::string_view target = first.substr(method_end + 1, target_end - method_end - 1);
  if (!target.starts_with('/')) return std::nullopt;
  const size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != std::string_view::npos) request.query = std::string(target.substr(question + 1));
  while (!head.empty()) {
    const std::string_view line = TakeHttpLine(head);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string name = absl::AsciiStrToLower(AbslView(line.substr(0, colon)));
    const std::string_view value = Stripped(line.substr(colon + 1));
    if (name == "host") request.host = HostWithoutPort(value);
    if (name == "authorization") request.authorization = std::string(value);
  }
  return request;
}

std::optional<std::string> QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
    std::string value;
    for (size_t i = equals + 1; i < pair.size(); ++i) {
      const bool escaped = pair[i] == '%' && i + 2 < pair.size() && absl::ascii_isxdigit(pair[i + 1]) &&
                           absl::ascii_isxdigit(pair[i + 2]);
      value += escaped ? absl::HexStringToBytes(AbslView(pair.substr(i + 1, 2))) : std::string(1, pair[i]);
      if (escaped) i += 2;
    }
    return value;
  }
  return std::nullopt;
}

std::string EncodeHttpAnswer(const HttpAnswer& answer, bool with_body) {
  std::string bytes =
      absl::StrCat("HTTP/1.1 ", answer.status, " ", AbslView(HttpReason(answer.status)),
                   "\r\nContent-Type: ", answer.type, "\r\nContent-Length: ", answer.body.size(),
                   "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer",
                   answer.status == 401 ? "\r\nWWW-Authenticate: Bearer" : "", "\r\nConnection: close\r\n\r\n");
  if (with_body) bytes += answer.body;
  return bytes;
}

}  // namespace muster
