// One of several sets of memory for the values of a client, and which version of them is there: an algorithm that
// computes with one set while another is pulled lends them to the client in turns. Used by the client's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/store/client/store_client.h"

namespace muster {

struct ValueSet {
  std::vector<MutableByteSpan> values;  // one a variable
  std::vector<uint64_t> versions;       // one a ps

  // Pulls come here from now on.
  void PullInto(StoreClient& client) const { client.binding_.values = values; }
  // What has been pulled last is in this set.
  void NotePulled(const StoreClient& client) {
    versions.resize(client.servers_.size());
    for (size_t ps = 0; ps < versions.size(); ++ps) versions[ps] = client.servers_[ps].pulled_version;
  }
  // What is pushed next was computed from this set.
  void NoteComputedFrom(StoreClient& client) const {
    for (size_t ps = 0; ps < versions.size(); ++ps) client.servers_[ps].pulled_version = versions[ps];
  }
};

}  // namespace muster
