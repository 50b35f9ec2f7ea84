// Kills a simulated ps inside the store: counts the points that it passes and kills its process at one of them. Also
// tells when a synchronous gate has fired.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "muster/sim/planted_bugs.h"
#include "muster/store/arena/arena_probe.h"
#include "muster/transport/simulated/simulated_process.h"

namespace muster {

class DeadlyProbe final : public ArenaProbe {
 public:
  // `bug` may be null; both must outlive this.
  DeadlyProbe(SimulatedProcess& process, const PlantedClusterBug* bug) : process_(process), bug_(bug) {}

  // Kills the process at the `passes`-th point from now.
  void KillAfter(uint64_t passes) { left_ = passes; }

  // Called at ArenaPoint::kFired.
  void OnFired(std::function<void()> handler) { on_fired_ = std::move(handler); }

  void At(ArenaPoint point) override {
    if (left_ == 0 && point != ArenaPoint::kFired) return;
    // Another ps's watch may read this ps's arena; that must not kill this ps.
    const SimulatedThread* thread = process_.world().current();
    if (!process_.alive() || thread == nullptr || &thread->process() != &process_) return;
    if (point == ArenaPoint::kFired && on_fired_) on_fired_();
    if (left_ == 0 || --left_ > 0) return;
    dying_ = true;
    process_.Die();
  }
  bool Has(PlantedBug bug) const override { return bug_ != nullptr && bug_->Has(bug); }
  bool dying() const override { return dying_; }

 private:
  SimulatedProcess& process_;
  const PlantedClusterBug* const bug_;
  uint64_t left_ = 0;  // 0: not killed
  bool dying_ = false;
  std::function<void()> on_fired_;
};

}  // namespace muster
