#include "muster/observe/status_server.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/observe/prometheus_text.h"

namespace muster {
namespace {

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// Makes a page that reloads itself every two seconds. `query`: what the links need to be let in, "" or "?token=…".
std::string Page(const std::string& title, const std::string& text, const std::string& query) {
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>",
      Escaped(title),
      " - muster</title>\n<style>"
      "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1a1d21;"
      "background:#fff}"
      "h1{font-size:1.3rem;margin:0}a{color:#0b57d0}pre{font:13px/1.5 ui-monospace,monospace;overflow-x:auto;"
      "background:#f4f6f8;padding:1rem;border-radius:6px}"
      "@media(prefers-color-scheme:dark){body{background:#15181c;color:#e6e8ea}pre{background:#1f2429}a{color:#8ab4f8}}"
      "</style></head>\n<body><h1>",
      Escaped(title), "</h1>\n<p><a href=\"/status", Escaped(query),
      "\">/status</a> (JSON) &middot; <a href=\"/metrics", Escaped(query), "\">/metrics</a> (Prometheus)</p>\n<pre>",
      Escaped(text), "</pre></body></html>\n");
}

std::string OwnHostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return absl::AsciiStrToLower(name.data());
}

bool IsAddressLiteral(const std::string& host) {
  return !host.empty() && (host.front() == '[' || host.find_first_not_of("0123456789.") == std::string::npos);
}

// Takes the same time whatever the first difference is, so that a token can't be found byte by byte.
bool IsSameSecret(const std::string& a, const std::string& b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

// Decides who may see the page.
class StatusGuard {
 public:
  StatusGuard(const StatusAddress& address, bool is_loopback, std::string token)
      : bound_name_(absl::AsciiStrToLower(address.host)),
        host_name_(OwnHostName()),
        is_loopback_(is_loopback),
        token_(std::move(token)) {}

  // Returns the answer to a request that isn't let in.
  std::optional<HttpAnswer> Refusal(const HttpRequest& request) const {
    if (!token_.empty() && HasToken(request)) return std::nullopt;
    if (!is_loopback_)
      return HttpAnswer{
          .status = 401,
          .body =
              "this page needs the job's token (MUSTER_JOB_TOKEN): send it as `Authorization: Bearer TOKEN`, or "
              "add ?token=TOKEN to the address\n"};
    if (IsOwnName(request.host)) return std::nullopt;
    return HttpAnswer{
        .status = 421,
        .body = absl::StrCat("this page isn't shown under the name '", request.host,
                             "'; accepted: an IP address, localhost, and the name of its host, '", host_name_, "'\n")};
  }

 private:
  bool HasToken(const HttpRequest& request) const {
    const absl::string_view given = request.authorization;
    const bool bearer = absl::StartsWithIgnoreCase(given, "bearer ");
    if (bearer && IsSameSecret(std::string(absl::StripAsciiWhitespace(given.substr(7))), token_)) return true;
    const std::optional<std::string> in_query = QueryValue(request.query, "token");
    return in_query && IsSameSecret(*in_query, token_);
  }
  // A client without a Host header is no browser.
  bool IsOwnName(const std::string& host) const {
    return host.empty() || IsAddressLiteral(host) || host == "localhost" || host == host_name_ ||
           host == host_name_.substr(0, host_name_.find('.')) || host == bound_name_;
  }

  const std::string bound_name_;
  const std::string host_name_;
  const bool is_loopback_;
  const std::string token_;
};

HttpAnswer AnswerOf(absl::StatusOr<std::string> body, std::string type) {
  if (body.ok()) return {.type = std::move(type), .body = *std::move(body)};
  return {.status = absl::IsUnavailable(body.status()) ? 503 : 500,
          .body = absl::StrCat(body.status().message(), "\n")};
}

HttpAnswer AnswerOf(const StatusSource& source, const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD")
    return {.status = 405, .body = "nothing can be changed here; accepted: GET\n"};
  const bool is_page = request.path == "/";
  const bool is_metrics = request.path == "/metrics";
  if (!is_page && !is_metrics && request.path != "/status")
    return {.status = 404, .body = absl::StrCat("there is no ", request.path, "; accepted: /, /status, /metrics\n")};
  const absl::StatusOr<std::string> status = source.status();
  if (!status.ok()) return AnswerOf(status, "");
  if (is_metrics) return AnswerOf(source.metrics(*status), kPrometheusContentType);
  if (!is_page) return AnswerOf(*status, "application/json");
  absl::StatusOr<std::string> text = source.text(*status);
  if (text.ok()) text = Page(source.title, *text, request.query.empty() ? "" : absl::StrCat("?", request.query));
  return AnswerOf(std::move(text), "text/html; charset=utf-8");
}

}  // namespace

StatusServer::StatusServer(std::unique_ptr<HttpDoor> door, std::string url)
    : door_(std::move(door)), url_(std::move(url)) {}

StatusServer::~StatusServer() = default;

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(const StatusAddress& address, StatusSource source,
                                                                  const std::string& token) {
  auto door = HttpDoor::Open(address);
  if (!door.ok()) return absl::InvalidArgumentError(absl::StrCat("--status_port: ", door.status().message()));
  if (!(*door)->is_loopback() && token.empty())
    return AsWrongConfiguration(absl::PermissionDeniedError(
        absl::StrCat("--status_port ", address.host, ":", address.port,
                     ": other hosts reach that address, and the page needs a job token there: set MUSTER_JOB_TOKEN to "
                     "the same secret in all processes of the job, or give the port alone, which serves this host")));
  std::string url = absl::StrCat("http://", address.host, ":", (*door)->port(), "/");
  (*door)->Serve([source = std::move(source),
                  guard = StatusGuard(address, (*door)->is_loopback(), token)](const HttpRequest& request) {
    std::optional<HttpAnswer> refusal = guard.Refusal(request);
    return refusal ? *std::move(refusal) : AnswerOf(source, request);
  });
  return std::unique_ptr<StatusServer>(new StatusServer(*std::move(door), std::move(url)));
}

}  // namespace muster
