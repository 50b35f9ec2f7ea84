// What a worker asks for with a push, and what it gets back: the same whether a ps applies the update or the worker
// applies it itself in the ps's arena. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "muster/base/bytes.h"
#include "muster/store/messages/messages.h"

namespace muster {

// The numbers in a request: its own, the values' generation, and ps 0's last global step.
struct StoreNumbers {
  uint64_t sequence = 0;
  uint64_t generation = 0;
  int64_t global_step = 0;
};

// What a StoreClient::PushPull does besides pushing.
struct StorePushOptions {
  PullWhat pull = PullWhat::kTrainable;
  bool publish_buffers = false;  // also push the bound memory of buffers (the chief does)
  uint32_t minibatches = 1;      // 0: push without counting an update
  // With a synchronous gate: the round that the gradients were computed for. The answer comes when it has fired, and ps
  // 0 counts the update; a push without a round must not update anything.
  std::optional<uint64_t> local_step = {};
  // With bounded staleness, where the answer waits for the slowest, or in the workers' order: this is the clock-th
  // push.
  uint64_t clock = 0;
  bool non_finite = false;  // nothing is pushed because it wasn't finite, which ps 0 counts
  bool recorded = true;     // on the client's track, which must then be this thread's
  double scale = 1;         // the rule sees the gradient times this; not for whole numbers, nor for exchanges
  // Returns the memory of variable i that its gradient was computed from, for ModelBinding::compensation and
  // ::adaptive; null: it isn't sent.
  std::function<ByteSpan(size_t)> computed_from = nullptr;
  // α of an elastic exchange: values are pushed, and how far they moved the centre is written to moved(i). See
  // elastic_exchange.h.
  double exchange = 0;
  std::function<MutableByteSpan(size_t)> moved = nullptr;
};

// The result of a push.
struct StorePushResult {
  int64_t global_step = 0;
  uint64_t staleness = 0;  // the largest of all ps
  bool dropped = false;    // the gradients were refused: too late for the round, or not finite (NonFinite::kDrop)
};

// Memory of a variable that updates change in place, and its owner, which keeps it mapped.
struct InPlaceMemory {
  MutableByteSpan bytes;  // empty: none
  std::shared_ptr<void> owner;
};

// Where a slice of a ps lies in the bound memory.
struct SlicePiece {
  int variable = 0;
  size_t offset = 0;  // bytes into the variable
  size_t bytes = 0;
  VariableKind kind = VariableKind::kTrainable;
};

}  // namespace muster
