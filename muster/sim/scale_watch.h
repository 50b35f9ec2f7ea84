// Looks at the pushes that one simulated ps scales by their staleness: of each push every row must have 1 / (τ + 1), τ
// being what the ps has noted of it. Used by StoreWatch; the store is only read.
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

  // After every event at the ps. If it has applied more than one push since, nothing is said of them.
  void Look();

 private:
  void Check(Arena& arena, int client, uint64_t staleness);

  const int ps_;
  const StoreService& service_;
  const Peers peers_;
  bool looked_ = false;
  uint64_t generation_ = 0;          // seen last, as the next two
  std::vector<uint64_t> staleness_;  // how many pushes, by τ
  std::vector<uint64_t> applied_;    // by client, the number of its last push
  // By client: all of its next push is applied here. What an earlier life of the ps died in has been scaled twice, by
  // the staleness of two moments.
  std::vector<bool> whole_;
};

}  // namespace muster
