// Checks in one life of a simulated ps that synchronous training gets on: no worker that is heard keeps the others
// waiting in an elastic round for longer than the limit that its own steps set. Used by StoreWatch; only reads the
// store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/service/store_service.h"

namespace muster {

class ProgressWatch {
 public:
  // Both must outlive it.
  ProgressWatch(int ps, const StoreService& service, std::function<void(const std::string&)> violated)
      : ps_(ps), service_(service), violated_(std::move(violated)) {}

  // Call after every event at the ps.
  void Verify();

 private:
  void Check(const ClientTable::Client& client, absl::Time now, absl::Time& owes_since);

  const int ps_;
  const StoreService& service_;
  const std::function<void(const std::string&)> violated_;
  uint64_t round_ = 0;
  absl::Time seen_ = absl::InfinitePast();
  std::vector<absl::Time> owes_since_;  // one per client; InfiniteFuture: it owes nothing
};

}  // namespace muster
