// What a rank has called. The ranks compare their calls: all must be equal. Plain values.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/dtype.h"
#include "muster/collective/collective.h"

namespace muster {

enum class CollectiveOperation : uint32_t {
  kAllReduce = 1,
  kReduceScatter = 2,
  kAllGather = 3,
  kBroadcast = 4,
  kBarrier = 5,
};

// Lies in shared memory and goes over the wire as it is: 24 bytes.
struct CollectiveCall {
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  uint32_t dtype = 0;      // 0: none
  uint32_t reduction = 0;  // likewise
  uint32_t root = 0;       // in an all-gather, the bytes of an element
  uint64_t bytes = 0;      // of the whole, that is, of all shares together

  bool operator==(const CollectiveCall&) const = default;
};

inline std::string Describe(const CollectiveCall& call) {
  static constexpr const char* kNames[] = {"?", "all-reduce", "reduce-scatter", "all-gather", "broadcast", "barrier"};
  const auto number = static_cast<uint32_t>(call.operation);
  std::string text = absl::StrCat(number == 1 || number == 3 ? "an " : "a ", kNames[number <= 5 ? number : 0]);
  if (call.operation == CollectiveOperation::kBarrier) return text;
  absl::StrAppend(&text, " of ", call.bytes, " bytes");
  if (call.dtype != 0) absl::StrAppend(&text, " of ", DTypeName(static_cast<DType>(call.dtype)));
  if (call.reduction != 0)
    absl::StrAppend(&text, call.reduction == static_cast<uint32_t>(Reduction::kMean) ? " (mean)" : " (sum)");
  if (call.operation == CollectiveOperation::kBroadcast) absl::StrAppend(&text, " from rank ", call.root);
  return text;
}

inline std::string DescribeDifference(const std::string& one, const CollectiveCall& ones, const std::string& other,
                                      const CollectiveCall& others) {
  return absl::StrCat("the ranks of the group called different operations: ", one, " called ", Describe(ones), ", ",
                      other, " called ", Describe(others), ". All must train the same model with the same settings");
}

}  // namespace muster
