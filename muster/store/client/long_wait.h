// A wait for other workers, at a gate or a barrier: in the log it says whom for when it has lasted for half a minute,
// and every half minute from then on. Used by one thread.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace muster {

class StoreClient;

class LongWait {
 public:
  // Begins at `now`. `task`: who waits. `client` must outlive it.
  LongWait(StoreClient& client, const std::string& task, absl::Time now);
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // It still waits: to be called every few seconds at least. Asks ps 0, once in half a minute.
  void Look(absl::Time now);

 private:
  StoreClient& client_;
  const std::string& task_;
  const absl::Time began_;
  absl::Time next_;
  bool said_ = false;
};

}  // namespace muster
