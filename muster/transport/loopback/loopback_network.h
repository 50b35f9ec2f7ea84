// The address book of the transports in one process: who listens where. Give each test its own network. Thread-safe;
// must outlive the transports on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"

namespace muster {

struct LoopbackServer;  // loopback_link.h

class LoopbackNetwork {
 public:
  // Registers a server and returns its address; "host:0" gets a free port. AlreadyExists if a server listens there.
  absl::StatusOr<std::string> Add(const std::string& address, const std::shared_ptr<LoopbackServer>& server);
  void Remove(const std::string& address);
  // Null if no server listens there.
  std::shared_ptr<LoopbackServer> Find(const std::string& address);

 private:
  Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<LoopbackServer>> servers_ ABSL_GUARDED_BY(mutex_);
  int next_port_ ABSL_GUARDED_BY(mutex_) = 40000;
};

}  // namespace muster
