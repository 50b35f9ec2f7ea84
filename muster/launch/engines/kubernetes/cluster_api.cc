#include "muster/launch/engines/kubernetes/cluster_api.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_address.h"

namespace muster {
namespace {

constexpr size_t kMostAnswer = size_t{16} << 20;
constexpr size_t kMostApiWords = 1000;  // bytes

using TlsContext = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using TlsStream = std::unique_ptr<SSL, decltype(&SSL_free)>;

absl::Status NoApi(const ClusterApi& api, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("the API of Kubernetes at ", api.host, ":", api.port, ": ", why));
}

std::string WhyNoTls() {
  const unsigned long error = ERR_get_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? "the connection has ended" : reason;
}

absl::StatusOr<Socket> ConnectToApi(const ClusterApi& api, absl::Duration patience) {
  ASSIGN_OR_RETURN(const std::vector<Endpoint> endpoints,
                   Resolve({.host = api.host, .port = absl::StrCat(api.port)}, /*numeric_only=*/false));
  int error = 0;
  for (const Endpoint& endpoint : endpoints) {
    Socket socket(::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit = absl::ToTimeval(patience);
    if (!socket.valid()) continue;
    setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // of connect, too
    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(socket.fd(), endpoint.get(), endpoint.length) == 0) return socket;
    error = errno;
  }
  return NoApi(api, Describe(error));
}

// Returns a stream whose other end has proven to be the API, or null.
TlsStream StartTls(SSL_CTX* context, const ClusterApi& api, int socket) {
  TlsStream stream(SSL_new(context), SSL_free);
  if (stream == nullptr) return stream;
  X509_VERIFY_PARAM* const checked = SSL_get0_param(stream.get());
  const bool is_number = X509_VERIFY_PARAM_set1_ip_asc(checked, api.host.c_str()) == 1;
  const bool is_set = is_number || (X509_VERIFY_PARAM_set1_host(checked, api.host.c_str(), 0) == 1 &&
                                    SSL_set_tlsext_host_name(stream.get(), api.host.c_str()) == 1);
  if (!is_set || SSL_set_fd(stream.get(), socket) != 1 || SSL_connect(stream.get()) != 1)
    return TlsStream(nullptr, SSL_free);
  return stream;
}

// HTTP 1.0, so that the answer is as it is and ends with the connection.
std::string RequestText(const ClusterApi& api, const ApiRequest& request) {
  std::string text = absl::StrCat(request.method, " ", request.path, " HTTP/1.0\r\nHost: ", api.host,
                                  "\r\nAuthorization: Bearer ", api.token, "\r\nAccept: application/json\r\n");
  if (!request.body.empty())
    absl::StrAppend(&text, "Content-Type: application/json\r\nContent-Length: ", request.body.size(), "\r\n");
  return absl::StrCat(text, "\r\n", request.body);
}

// The API says what is wrong in an object Status.
absl::Status RefusalOf(int code, const std::string& body) {
  const nlohmann::json status = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const bool says = status.is_object() && status.contains("message") && status["message"].is_string();
  const std::string words =
      absl::StrCat("Kubernetes refuses it (", code,
                   "): ", OneLine(says ? status["message"].get<std::string>() : body, kMostApiWords));
  switch (code) {
    case 401:
    case 403:
      return absl::PermissionDeniedError(words);
    case 404:
      return absl::NotFoundError(words);
    case 409:
      return absl::AlreadyExistsError(words);
    default:
      return code >= 500 || code == 429 ? absl::UnavailableError(words) : absl::InvalidArgumentError(words);
  }
}

}  // namespace

absl::StatusOr<ClusterApi> ClusterApiOfPod(const std::vector<std::string>& environment, const std::string& folder) {
  ClusterApi api{.host = VariableIn(environment, "KUBERNETES_SERVICE_HOST"),
                 .ca_file = absl::StrCat(folder, "/ca.crt")};
  int port = 443;
  static_cast<void>(absl::SimpleAtoi(VariableIn(environment, "KUBERNETES_SERVICE_PORT"), &port));
  api.port = static_cast<uint16_t>(port);
  const auto word = [&folder](const char* file) {
    const auto text = PosixFileSystem().ReadFile(absl::StrCat(folder, "/", file));
    return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
  };
  api.token = word("token");
  api.name_space = word("namespace");
  if (api.host.empty() || api.token.empty() || api.name_space.empty())
    return absl::NotFoundError("this pod has no token of a service account (kubernetes: {service_account: …})");
  return api;
}

absl::StatusOr<std::string> ParseApiAnswer(std::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  int code = 0;
  const std::vector<std::string> words =
      absl::StrSplit(std::string(answer.substr(0, answer.find('\r'))), absl::MaxSplits(' ', 2));
  if (end == std::string_view::npos || words.size() < 2 || !absl::StartsWith(words[0], "HTTP/1") ||
      !absl::SimpleAtoi(words[1], &code))
    return absl::UnavailableError("the API of Kubernetes has answered without HTTP");
  std::string body(answer.substr(end + 4));
  if (code >= 200 && code < 300) return body;
  return RefusalOf(code, body);
}

absl::StatusOr<std::string> CallClusterApi(const ClusterApi& api, const ApiRequest& request, absl::Duration patience) {
  const TlsContext context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr || SSL_CTX_load_verify_locations(context.get(), api.ca_file.c_str(), nullptr) != 1)
    return NoApi(api, absl::StrCat("its certificates can't be read from ", api.ca_file));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // A server may end the connection without a goodbye of TLS; what is missing then isn't JSON.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  ASSIGN_OR_RETURN(const Socket socket, ConnectToApi(api, patience));
  const absl::Time until = RealClock().Now() + patience;
  const TlsStream stream = StartTls(context.get(), api, socket.fd());
  if (stream == nullptr) return NoApi(api, WhyNoTls());
  const std::string text = RequestText(api, request);
  if (SSL_write(stream.get(), text.data(), static_cast<int>(text.size())) != static_cast<int>(text.size()))
    return NoApi(api, WhyNoTls());
  std::string answer;
  std::array<char, 16384> piece;
  for (int got = 0; (got = SSL_read(stream.get(), piece.data(), static_cast<int>(piece.size()))) > 0;) {
    answer.append(piece.data(), static_cast<size_t>(got));
    if (answer.size() > kMostAnswer || RealClock().Now() > until) return NoApi(api, "its answer has no end");
  }
  return ParseApiAnswer(answer);
}

}  // namespace muster
