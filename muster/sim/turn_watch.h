// Checks the clocks of an ordered model's workers on one simulated ps: their pushes come in the order of the workers,
// one from each in turn. Used by StoreWatch; only reads the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "muster/store/service/store_service.h"

namespace muster {

// What is known of the workers' order over all lives of all ps.
struct TurnTruth {
  // One entry per ps, one bit per worker that was done there or has asked to leave. The others have gone on without it;
  // a later life of it may be any number of pushes behind.
  std::vector<uint64_t> left;
  // On a ps whose memory is gone each clock begins anew when its worker asks again.
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

  // Call before the ps gets the request.
  void Note(const IncomingRequest& request);
  // Call after every event at the ps. The first of two workers must be at the second's clock or one further.
  void Verify();

 private:
  const int ps_;
  const StoreService& service_;
  const Peers peers_;
};

}  // namespace muster
