// Checks the pushes that a simulated ps scales by their staleness: every row must have each push times 1 / (τ + 1),
// where τ is the staleness that the ps has recorded for it. Used by StoreWatch; only reads the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "muster/sim/push_ledger.h"
#include "muster/store/service/store_service.h"

namespace muster {

class ScaleWatch {
 public:
  struct Peers {
    const PushLedger* ledger = nullptr;
    std::function<void(const std::string&)> violated;
  };
  // All must outlive it.
  ScaleWatch(int ps, const StoreService& service, Peers peers) : ps_(ps), service_(service), peers_(std::move(peers)) {}

  // Call after every event at the ps. Checks nothing if the ps has applied more than one push since the last call.
  void Verify();

 private:
  void Check(Arena& arena, int client, uint64_t staleness);

  const int ps_;
  const StoreService& service_;
  const Peers peers_;
  bool looked_ = false;
  uint64_t generation_ = 0;          // as last seen, like the next two
  std::vector<uint64_t> staleness_;  // number of pushes, by τ
  std::vector<uint64_t> applied_;    // by client, the number of its last push
  // By client: whether its next push will be applied only by this life. A push in which an earlier life died was scaled
  // twice, by its staleness at two different times.
  std::vector<bool> whole_;
};

}  // namespace muster
