// The messages about queues (docs/queues.md); messages.h encodes them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/dtype.h"

namespace muster {

// One tensor of an element.
struct QueueComponent {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;

  bool operator==(const QueueComponent&) const = default;
};

struct OpenQueueRequest {
  std::string task;   // the calling task, for the status page
  uint64_t lane = 0;  // see docs/queues.md
  std::string name;
  uint64_t capacity = 0;  // elements
  std::vector<QueueComponent> components;
};

// kEnqueue (bulk: the element), kDequeue, kCloseQueue, kQueueSize.
struct QueueRequest {
  static constexpr uint64_t kNoLimit = ~uint64_t{0} >> 1;

  uint64_t lane = 0;
  uint64_t sequence = 0;        // within the lane, from 1 on
  uint64_t wait_ms = 0;         // how long the answer may be held back
  uint64_t count = 0;           // dequeue: elements
  bool small_batch = false;     // dequeue: fewer will do once the queue is closed
  bool cancel_pending = false;  // close: cancels waiting enqueues
};

// The bulk of a dequeue's reply: `elements` rows of each component, component by component.
struct QueueReply {
  uint64_t elements = 0;
  uint64_t size = 0;  // elements in the queue afterwards
  bool closed = false;
};

}  // namespace muster
