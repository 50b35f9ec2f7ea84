// The API of the cluster in whose pod this process is, by the token of the pod's service account. Each call has a
// connection of its own and blocks. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

struct ClusterApi {
  std::string host;  // a name or an address
  uint16_t port = 443;
  std::string token;
  std::string ca_file;     // whose certificates the server's must come from
  std::string name_space;  // of the pod
};

inline constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";

// Returns it as Kubernetes tells a pod: `environment` ("NAME=VALUE") has the address, the folder token, ca.crt and
// namespace. NotFound: the pod has no such token.
absl::StatusOr<ClusterApi> ClusterApiOfPod(const std::vector<std::string>& environment,
                                           const std::string& folder = kServiceAccountFolder);

struct ApiRequest {
  std::string method = "GET";
  std::string path;       // "/api/v1/namespaces/team/pods"
  std::string body = "";  // JSON
};

// Returns the answer's body. Unavailable: nobody answers, or the server can't prove who it is. PermissionDenied,
// NotFound, AlreadyExists, InvalidArgument: the API's refusal, in its own words.
absl::StatusOr<std::string> CallClusterApi(const ClusterApi& api, const ApiRequest& request, absl::Duration patience);

// Returns the body of an answer of HTTP that is at its end, or the refusals of CallClusterApi.
absl::StatusOr<std::string> ParseApiAnswer(std::string_view answer);

}  // namespace muster
