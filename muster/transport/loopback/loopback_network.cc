#include "muster/transport/loopback/loopback_network.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<std::string> LoopbackNetwork::Add(const std::string& address,
                                                 const std::shared_ptr<LoopbackServer>& server) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not an address; accepted: host:port"));
  }
  MutexLock lock(mutex_);
  std::string name = address;
  while (absl::EndsWith(address, ":0")) {
    name = absl::StrCat(address.substr(0, colon + 1), next_port_++);
    if (!servers_.contains(name)) break;
  }
  if (!servers_.emplace(name, server).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("port ", address.substr(colon + 1), " of ", address.substr(0, colon), " is in use"));
  }
  return name;
}

void LoopbackNetwork::Remove(const std::string& address) {
  MutexLock lock(mutex_);
  servers_.erase(address);
}

std::shared_ptr<LoopbackServer> LoopbackNetwork::Find(const std::string& address) {
  MutexLock lock(mutex_);
  auto it = servers_.find(address);
  return it == servers_.end() ? nullptr : it->second;
}

}  // namespace muster
