// Looks at the clocks of an ordered model's workers on one simulated ps: their pushes come in the order of the workers,
// one of each in turn. Used by StoreWatch; the store is only read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "muster/store/service/store_service.h"

namespace muster {

// What is known of the workers' order, over all lives of all ps.
struct TurnTruth {
  // One a ps, a bit a worker: it was done there, or has asked to leave. The others have gone on without it; a later
  // life of it may be any number of pushes behind.
  std::vector<uint64_t> left;
  // Clocks begin anew on a ps whose memory is gone, each when its worker asks again.
  bool memory_lost = false;
};

class TurnWatch {
 public:
  struct Peers {
    TurnTruth* truth = nullptr;
    std::function<void(const std::string&)> violated;
  };
  // All must outlive it.
  TurnWatch(int ps, const StoreService& service, Peers peers) : ps_(ps), service_(service), peers_(std::move(peers)) {}

  // Before the ps gets it.
  void Note(const IncomingRequest& request);
  // After every event at the ps: of two workers the first is at the second's clock, or one further.
  void Look();

 private:
  const int ps_;
  const StoreService& service_;
  const Peers peers_;
};

}  // namespace muster
