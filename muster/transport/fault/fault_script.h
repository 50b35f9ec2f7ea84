// Which requests meet which fault: by count, not by chance, so that a test determines exactly what happens. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster {

enum class FaultKind {
  kDropRequest,       // the request never arrives; the caller waits until its deadline
  kDropReply,         // the request is carried out, but the caller waits until its deadline
  kDelayRequest,      // the request is sent later by `delay`
  kDelayReply,        // the reply arrives later by `delay`
  kDuplicateRequest,  // the request arrives twice; the caller sees the first answer
  kCutRequest,        // the connection breaks after `bytes` of the request's control and bulk
  kCutReply,          // the request is carried out, but the connection breaks before the reply arrives
  kRefuse,            // connections are refused for `delay`
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
