// Runs a test's callback once, just before the ps locks a stripe: the moment at which a worker on the same host can
// interleave.
#pragma once

#include <functional>
#include <utility>

#include "muster/store/arena/arena_probe.h"

namespace muster {

class ScriptedMoment final : public ArenaProbe {
 public:
  void At(ArenaPoint point) override {
    if (point == ArenaPoint::kBeforeLock && does && stripes-- == 0) std::exchange(does, nullptr)();
  }
  bool Has(PlantedBug) const override { return false; }
  bool dying() const override { return false; }

  std::function<void()> does;
  int stripes = 0;  // to let pass first
};

}  // namespace muster
