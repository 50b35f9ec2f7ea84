// Faults by count: the third request of a kind is dropped, the next ten are late. Which requests of a process meet them
// is written in the script that its SimulatedTransport was given; nothing is left to chance (what comes by chance or at
// a time is in simulated_network.h). One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster {

enum class FaultKind : uint8_t {
  kDropRequest,       // it never arrives; the call waits until its deadline
  kDropReply,         // it is carried out, but its answer never arrives
  kDelayRequest,      // it leaves later by `delay`
  kDelayReply,        // its answer leaves later by `delay`
  kDuplicateRequest,  // it arrives twice; the caller sees the first answer
  kCutRequest,        // the connection breaks after `bytes` of its control and bulk, before the last at the latest
  kCutReply,          // it is carried out, but the connection breaks before the answer arrives
  kRefuse,            // the connection breaks before it, and others of the process are refused for `delay`
};

struct Fault {
  FaultKind kind = FaultKind::kDropRequest;
  uint64_t first = 1;              // the first request to meet it; counts matching requests, from 1
  uint64_t times = 1;              // how many requests in a row meet it
  std::optional<uint16_t> method;  // only requests of this method
  std::string peer;                // only requests to this address; empty: all
  absl::Duration delay = absl::Milliseconds(100);
  size_t bytes = 0;
};

class FaultScript {
 public:
  explicit FaultScript(std::vector<Fault> faults = {});

  void Add(Fault fault);

  // Counts a request; returns the first fault of the script that it meets, if any.
  std::optional<Fault> Meet(uint16_t method, const std::string& peer);

  // How many requests have met a fault.
  uint64_t met() const { return met_; }

 private:
  struct Entry {
    Fault fault;
    uint64_t matched = 0;
  };

  std::vector<Entry> entries_;
  uint64_t met_ = 0;
};

}  // namespace muster
