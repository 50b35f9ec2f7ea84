// One of several sets of memory for a client's values, with the versions that it holds. An algorithm that computes with
// one set while another is pulled lends them to the client in turns. Used by the client's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "muster/store/client/store_client.h"

namespace muster {

struct ValueSet {
  std::vector<MutableByteSpan> values;  // one per variable
  std::vector<uint64_t> versions;       // one per ps

  // Directs later pulls into this set.
  void PullInto(StoreClient& client) const { client.binding_.values = values; }
  // Notes that the last pull went into this set.
  void NotePulled(const StoreClient& client) {
    versions.resize(client.bound_.size());
    for (size_t ps = 0; ps < versions.size(); ++ps) versions[ps] = client.bound_[ps].pulled_version;
  }
  // Notes that the next push was computed from this set.
  void NoteComputedFrom(StoreClient& client) const {
    for (size_t ps = 0; ps < versions.size(); ++ps) client.bound_[ps].pulled_version = versions[ps];
  }

  // Pulls everything that the ps hold now into this set, and leaves the client as it was: its next push still counts as
  // computed from what it pulled before. Only the client's global step moves.
  [[nodiscard]] absl::Status Peek(StoreClient& client) const;

 private:
  static std::vector<uint64_t> PulledVersions(const StoreClient& client);
  static void SetPulledVersions(StoreClient& client, const std::vector<uint64_t>& versions);
};

}  // namespace muster
