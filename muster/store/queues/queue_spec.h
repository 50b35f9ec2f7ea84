// The specification of a queue: its name, how many elements it holds, and what an element consists of. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/store/messages/queue_messages.h"

namespace muster {

struct QueueSpec {
  std::string name;
  uint64_t capacity = 0;  // elements
  std::vector<QueueComponent> components;

  bool operator==(const QueueSpec&) const = default;
};

// Bytes that one element costs a ps beside its own.
constexpr uint64_t kQueueElementOverhead = 64;
constexpr uint64_t kMaxQueueElements = uint64_t{1} << 20;  // in a queue, and in an answer
constexpr uint64_t kMaxQueueAnswerBytes = uint64_t{256} << 20;

// For a valid spec.
uint64_t ComponentBytes(const QueueComponent& component);
uint64_t ElementBytes(const QueueSpec& spec);

// InvalidArgument says what is wrong, and what is accepted.
[[nodiscard]] absl::Status ValidateQueue(const QueueSpec& spec);
// InvalidArgument: an answer never holds this many elements.
[[nodiscard]] absl::Status ValidateDequeue(const QueueSpec& spec, uint64_t count);

// "capacity 10, elements (float32[2,3], int64[])". For a valid spec.
std::string DescribeQueue(const QueueSpec& spec);
std::string DescribeComponent(const QueueComponent& component);

// Returns which ps of `num_ps` (at least 1) keeps the queue of that name unless another is asked for: FNV-1a, 64 bits.
int PsOfQueue(const std::string& name, int num_ps);

}  // namespace muster
