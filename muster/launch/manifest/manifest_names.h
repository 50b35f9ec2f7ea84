// Names in Kubernetes: which are accepted, and those by which a manifest's tasks reach each other. Pure, thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/launch/manifest/manifest_request.h"

namespace muster {

// The port at which every task serves; each has an address of its own.
inline constexpr int kManifestPort = 2222;

// Returns the JobSet's or Job's part of a role's name, and the name of the Job that holds the role's tasks:
// "digits-worker", or "digits-worker-0" within a JobSet.
std::string JobNameOf(const ManifestRequest& request, const ManifestRole& role);
// Returns the address that resolves in the pods' namespace as soon as the pod has an IP:
// "digits-worker-1.digits:2222". A TFJob's operator knows the addresses itself: there it is what TFJob makes.
std::string ManifestAddress(const ManifestRequest& request, const ManifestRole& role, int index);
// Whether tasks of the role listen: all but the evaluator; of torchrun all.
bool IsReached(const ManifestRole& role);

// Returns a DNS label made of `text`, as near to it as can be; "" if nothing is left: "My_net.2" becomes "my-net-2".
std::string DnsLabelOf(absl::string_view text);
// InvalidArgument, "WHAT 'NAME': accepted is …".
[[nodiscard]] absl::Status CheckDnsLabel(absl::string_view what, const std::string& name);
// The same for a name of several labels with dots between them, as a Secret may have.
[[nodiscard]] absl::Status CheckDnsName(absl::string_view what, const std::string& name);
// The same for a key of a Secret.
[[nodiscard]] absl::Status CheckSecretKey(absl::string_view what, const std::string& key);
// The same for the key of a label, a selector or a toleration: [PREFIX/]NAME.
[[nodiscard]] absl::Status CheckLabelKey(absl::string_view what, const std::string& key);
[[nodiscard]] absl::Status CheckLabelValue(absl::string_view what, const std::string& value);

}  // namespace muster
