// Ports of this machine that nobody uses, for the servers of a run that are about to be started. A port is held (bound,
// not listened on) until just before its server starts, so that two runs that start together get different ones. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

class FreePorts {
 public:
  // `count` different TCP ports on 127.0.0.1. ResourceExhausted if there are none left.
  static absl::StatusOr<FreePorts> Reserve(int count);
  ~FreePorts();
  FreePorts(FreePorts&& other) noexcept = default;
  FreePorts& operator=(FreePorts&&) = delete;

  uint16_t port(size_t index) const { return held_[index].port; }
  // Lets go of one, for its server to bind. Once.
  void Release(size_t index);

 private:
  struct Held {
    uint16_t port;
    int fd;  // -1 once released
  };

  FreePorts() = default;

  std::vector<Held> held_;
};

}  // namespace muster
