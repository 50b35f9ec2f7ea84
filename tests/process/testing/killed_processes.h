// Forked processes of a test that share memory with it and are killed with SIGKILL at points inside the store:
// repeatedly at random points, or each at one that the test names. Used by one thread; the processes never return.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <optional>
#include <random>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/store/arena/arena.h"
#include "muster/store/arena/arena_probe.h"

namespace muster {

// An object that the test shares with the processes that it forks.
template <typename T>
class SharedWithChildren {
 public:
  SharedWithChildren()
      : object_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T()) {}
  ~SharedWithChildren() { munmap(object_, sizeof(T)); }
  SharedWithChildren(const SharedWithChildren&) = delete;
  SharedWithChildren& operator=(const SharedWithChildren&) = delete;

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  T* const object_;
};

// Records where processes have died, and tells them when to stop dying.
struct KillLog {
  uint64_t Deaths(ArenaPoint point) const { return deaths[static_cast<size_t>(point)]; }

  std::array<std::atomic<uint64_t>, kArenaPoints> deaths;
  std::atomic<bool> stop;
};

// Kills this process.
[[noreturn]] void DieAt(ArenaPoint point, KillLog& log);

// Dies at a point with a probability of one in `one_in`; five times as often from kAcknowledging on, which a process
// passes more rarely. Never dies once the log says stop.
class KillingProbe final : public ArenaProbe {
 public:
  KillingProbe(KillLog& log, uint64_t seed, int one_in, std::optional<PlantedBug> bug)
      : log_(log), random_(seed), one_in_(one_in), bug_(bug) {}
  void At(ArenaPoint point) override {
    if (log_.stop) return;
    if (random_() % (point >= ArenaPoint::kAcknowledging ? one_in_ / 5 : one_in_) == 0) DieAt(point, log_);
  }
  bool Has(PlantedBug bug) const override { return bug_ == bug; }
  bool dying() const override { return false; }

 private:
  KillLog& log_;
  std::minstd_rand random_;
  const int one_in_;
  const std::optional<PlantedBug> bug_;
};

// Points that every update of an arena passes, or its recovery.
inline constexpr ArenaPoint kUpdatePoints[] = {
    ArenaPoint::kBeforeLock,     ArenaPoint::kLocked,       ArenaPoint::kHeaderSaved,  ArenaPoint::kUndoValid,
    ArenaPoint::kBlockSaved,     ArenaPoint::kBlockCounted, ArenaPoint::kBlockChanged, ArenaPoint::kHeaderWritten,
    ArenaPoint::kCommitted,      ArenaPoint::kUnlocked,     ArenaPoint::kOwnerDied,    ArenaPoint::kBlockRestored,
    ArenaPoint::kHeaderRestored, ArenaPoint::kUndoDropped,  ArenaPoint::kRecovered,    ArenaPoint::kAcknowledging,
    ArenaPoint::kJournalled,     ArenaPoint::kCounted};
// Expects that processes have died at each of them.
void ExpectDeathsAt(absl::Span<const ArenaPoint> points, const KillLog& log);

// Returns a gradient of a slice that has `value` in each element.
std::vector<std::byte> EvenGradient(const Arena& arena, int slice, double value);

// Starts a process that runs `live` and ends with 0. It dies with the test.
pid_t Fork(absl::FunctionRef<void()> live);

// Runs `live(i)` in process i of `count`, again whenever it is killed, until `kills` have died; then sets the log's
// stop, and processes killed last get one more life to finish in. Returns how many died; -1 if none died for as long as
// `patience`, so they must be stuck, or if one ended in another way.
int RunUntilKilled(int count, int kills, absl::Duration patience, KillLog& log, absl::FunctionRef<void(int)> live);

}  // namespace muster
