#include "muster/store/client/value_set.h"

#include <utility>

#include "muster/store/client/direct_updates.h"

namespace muster {

absl::Status ValueSet::Peek(StoreClient& client) const {
  const std::vector<uint64_t> pulled = PulledVersions(client);
  const uint64_t round = client.round_;
  const int64_t global_step = client.global_step_;
  std::vector<MutableByteSpan> bound = std::exchange(client.binding_.values, values);
  const absl::Status status = client.Pull(PullWhat::kEverything);
  client.binding_.values = std::move(bound);
  SetPulledVersions(client, pulled);
  // A gradient of the older values that took part in a newer round would be taken for one of the newer values.
  client.round_ = round;
  // In the workers' order learning rates go by the step of this worker's own turn, the same in every run.
  if (client.binding_.ordered) client.global_step_ = global_step;
  return status;
}

std::vector<uint64_t> ValueSet::PulledVersions(const StoreClient& client) {
  std::vector<uint64_t> versions(client.bound_.size());
  for (size_t ps = 0; ps < versions.size(); ++ps)
    versions[ps] =
        client.direct_->on() ? client.direct_->pulled_version(static_cast<int>(ps)) : client.bound_[ps].pulled_version;
  return versions;
}

void ValueSet::SetPulledVersions(StoreClient& client, const std::vector<uint64_t>& versions) {
  for (size_t ps = 0; ps < versions.size(); ++ps) {
    client.bound_[ps].pulled_version = versions[ps];
    if (client.direct_->on()) client.direct_->SetPulledVersion(static_cast<int>(ps), versions[ps]);
  }
}

}  // namespace muster
