#include "muster/store/queues/queue_spec.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/fnv1a.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kMaxName = 256;
constexpr size_t kMaxComponents = 64;
constexpr size_t kMaxRank = 32;

bool IsDType(DType dtype) { return dtype >= DType::kFloat32 && dtype <= DType::kBool; }

absl::Status ValidateComponent(const QueueSpec& spec, size_t i) {
  const QueueComponent& component = spec.components[i];
  const std::string which = absl::StrCat("component ", i, " of queue '", spec.name, "'");
  if (!IsDType(component.dtype))
    return absl::InvalidArgumentError(
        absl::StrCat(which, " has the unknown type ", static_cast<int>(component.dtype), "; accepted: 1 to 8"));
  if (component.shape.size() > kMaxRank)
    return absl::InvalidArgumentError(
        absl::StrCat(which, " has ", component.shape.size(), " dimensions; accepted: up to ", kMaxRank));
  uint64_t bytes = DTypeSize(component.dtype);
  for (const int64_t size : component.shape) {
    if (size < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(which, " has a dimension of ", size, "; a queue's shapes are known: 0 or more"));
    if (size > 0 && bytes > kMaxQueueAnswerBytes / static_cast<uint64_t>(size))
      return absl::InvalidArgumentError(
          absl::StrCat(which, " is larger than an answer may be, ", kMaxQueueAnswerBytes, " bytes"));
    bytes *= static_cast<uint64_t>(size);
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t ComponentBytes(const QueueComponent& component) {
  uint64_t bytes = DTypeSize(component.dtype);
  for (const int64_t size : component.shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

uint64_t ElementBytes(const QueueSpec& spec) {
  uint64_t bytes = 0;
  for (const QueueComponent& component : spec.components) bytes += ComponentBytes(component);
  return bytes;
}

absl::Status ValidateQueue(const QueueSpec& spec) {
  if (spec.name.empty() || spec.name.size() > kMaxName)
    return absl::InvalidArgumentError(
        absl::StrCat("a queue's name has ", spec.name.size(), " bytes; accepted: 1 to ", kMaxName));
  if (spec.capacity == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", spec.name, "' has no capacity: give .capacity; accepted: 1 to ", kMaxQueueElements));
  if (spec.capacity > kMaxQueueElements)
    return absl::InvalidArgumentError(absl::StrCat("queue '", spec.name, "' has a capacity of ", spec.capacity,
                                                   " elements; accepted: 1 to ", kMaxQueueElements));
  if (spec.components.empty() || spec.components.size() > kMaxComponents)
    return absl::InvalidArgumentError(absl::StrCat("an element of queue '", spec.name, "' has ", spec.components.size(),
                                                   " tensors; accepted: 1 to ", kMaxComponents));
  for (size_t i = 0; i < spec.components.size(); ++i) RETURN_IF_ERROR(ValidateComponent(spec, i));
  return ValidateDequeue(spec, 1);
}

absl::Status ValidateDequeue(const QueueSpec& spec, uint64_t count) {
  const uint64_t element = ElementBytes(spec);
  if (count >= 1 && count <= kMaxQueueElements && (element == 0 || count <= kMaxQueueAnswerBytes / element))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(count, " elements of queue '", spec.name, "', which have ", element,
                                                 " bytes each, can't be one answer; accepted: 1 to ", kMaxQueueElements,
                                                 ", and ", kMaxQueueAnswerBytes, " bytes together"));
}

std::string DescribeComponent(const QueueComponent& component) {
  return absl::StrCat(DTypeName(component.dtype), "[", absl::StrJoin(component.shape, ","), "]");
}

std::string DescribeQueue(const QueueSpec& spec) {
  const auto describe = [](std::string* out, const QueueComponent& component) {
    absl::StrAppend(out, DescribeComponent(component));
  };
  return absl::StrCat("capacity ", spec.capacity, ", elements (", absl::StrJoin(spec.components, ", ", describe), ")");
}

int PsOfQueue(const std::string& name, int num_ps) {
  return static_cast<int>(Fnv1a(name) % static_cast<uint64_t>(num_ps));
}

}  // namespace muster
