// What a test does, once, at a moment in the middle of what a ps does: where it is about to lock a stripe, which is
// where workers of its host may come in between.
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
  int stripes = 0;  // that it lets go by first
};

}  // namespace muster
