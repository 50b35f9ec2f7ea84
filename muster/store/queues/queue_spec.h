// What a queue is: its name, how many elements it holds, and what an element consists of. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/store/messages/queue_messages.h"

namespace muster {

struct QueueSpec {
  std::string name;
  uint64_t capacity = 0;  // elements
  std::vector<QueueComponent> components;

  bool operator==(const QueueSpec&) const = default;
};

// What one element costs a ps beside its bytes.
constexpr uint64_t kQueueElementOverhead = 64;
constexpr uint64_t kMaxQueueElements = uint64_t{1} << 20;  // of a queue, and of an answer
constexpr uint64_t kMaxQueueAnswerBytes = uint64_t{256} << 20;

// Of a spec that is valid.
uint64_t ComponentBytes(const QueueComponent& component);
uint64_t ElementBytes(const QueueSpec& spec);

// InvalidArgument: says what is wrong, and what is accepted.
[[nodiscard]] absl::Status ValidateQueue(const QueueSpec& spec);
// InvalidArgument: as many elements are never in one answer.
[[nodiscard]] absl::Status ValidateDequeue(const QueueSpec& spec, uint64_t count);

// "capacity 10, elements (float32[2,3], int64[])". For a spec that is valid.
std::string DescribeQueue(const QueueSpec& spec);
std::string DescribeComponent(const QueueComponent& component);

// The ps of `num_ps` (at least 1) that keeps the queue of that name unless another is asked for: FNV-1a, 64 bits.
int PsOfQueue(const std::string& name, int num_ps);

}  // namespace muster
