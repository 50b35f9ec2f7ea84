// Death at a point inside the store, for tests in one process: an exception that unlocks nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <thread>

#include "absl/functional/function_ref.h"
#include "muster/store/arena/arena_probe.h"

namespace muster {

// Dies at the n-th point (of that kind, if one is given) after KillAt.
class ScriptedDeath final : public ArenaProbe {
 public:
  struct Death {};
  void KillAt(uint64_t point, std::optional<ArenaPoint> kind = {}) {
    left_ = point;
    kind_ = kind;
    dying_ = false;
  }
  // From now on this is another process.
  void Bury() { dying_ = false; }
  void Plant(std::optional<PlantedBug> bug) { bug_ = bug; }
  void At(ArenaPoint point) override {
    ++passed;
    if (kind_ && point != *kind_) return;
    if (left_ == 0 || --left_ > 0) return;
    dying_ = true;
    throw Death();
  }
  bool Has(PlantedBug bug) const override { return bug_ == bug; }
  bool dying() const override { return dying_; }

  uint64_t passed = 0;

 private:
  uint64_t left_ = 0;
  std::optional<ArenaPoint> kind_;
  bool dying_ = false;
  std::optional<PlantedBug> bug_;
};

// Runs `what` in a thread: a thread that ends with a lock leaves it to the next one, as a process does. False: it died.
inline bool Survives(absl::FunctionRef<void()> what) {
  bool survived = true;
  std::thread([&] {
    try {
      what();
    } catch (const ScriptedDeath::Death&) {
      survived = false;
    }
  }).join();
  return survived;
}

}  // namespace muster
