#include "muster/collective/checked_call.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/collective/share.h"

namespace muster {
namespace {

template <typename Spans>
absl::Status CheckWhole(const Spans& segments, size_t element_bytes, const char* what) {
  for (const auto& segment : segments)
    if (segment.size() % element_bytes != 0)
      return absl::InvalidArgumentError(absl::StrCat("a segment of ", what, " has ", segment.size(),
                                                     " bytes; accepted: multiples of an element's ", element_bytes));
  return absl::OkStatus();
}

absl::Status CheckBytes(size_t bytes, size_t expected, const char* what) {
  if (bytes == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " has ", bytes, " bytes; accepted: ", expected));
}

absl::Status CheckReduction(const Segments& in, const MutableSegments& out, DType dtype) {
  if (!IsFloatingPoint(dtype))
    return absl::InvalidArgumentError(absl::StrCat("elements of ", DTypeName(dtype),
                                                   " are not added up; accepted: float32, float64, float16, bfloat16"));
  RETURN_IF_ERROR(CheckWhole(in, DTypeSize(dtype), "the input"));
  return CheckWhole(out, DTypeSize(dtype), "the output");
}

CollectiveCall ReductionCall(CollectiveOperation operation, const Segments& in, DType dtype, Reduction reduction) {
  return {.operation = operation,
          .dtype = static_cast<uint32_t>(dtype),
          .reduction = static_cast<uint32_t>(reduction),
          .bytes = TotalBytes(in)};
}

}  // namespace

absl::StatusOr<CollectiveCall> CallOfAllReduce(const Segments& in, const MutableSegments& out, DType dtype,
                                               Reduction reduction) {
  RETURN_IF_ERROR(CheckReduction(in, out, dtype));
  RETURN_IF_ERROR(CheckBytes(TotalBytes(out), TotalBytes(in), "the output"));
  return ReductionCall(CollectiveOperation::kAllReduce, in, dtype, reduction);
}

absl::StatusOr<CollectiveCall> CallOfReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                                   Reduction reduction, int rank, int size) {
  RETURN_IF_ERROR(CheckReduction(in, out, dtype));
  const size_t element = DTypeSize(dtype);
  const Share mine = ShareOf(TotalBytes(in) / element, rank, size);
  RETURN_IF_ERROR(CheckBytes(TotalBytes(out), mine.elements * element, "the output"));
  return ReductionCall(CollectiveOperation::kReduceScatter, in, dtype, reduction);
}

absl::StatusOr<CollectiveCall> CallOfAllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                               int rank, int size) {
  if (element_bytes == 0) return absl::InvalidArgumentError("elements of 0 bytes; accepted: from 1");
  RETURN_IF_ERROR(CheckWhole(out, element_bytes, "the output"));
  const Share mine = ShareOf(TotalBytes(out) / element_bytes, rank, size);
  RETURN_IF_ERROR(CheckBytes(TotalBytes(in), mine.elements * element_bytes, "the input, this rank's share,"));
  return CollectiveCall{.operation = CollectiveOperation::kAllGather,
                        .root = static_cast<uint32_t>(element_bytes),
                        .bytes = TotalBytes(out)};
}

absl::StatusOr<CollectiveCall> CallOfBroadcast(const MutableSegments& data, int root, int size) {
  if (root < 0 || root >= size)
    return absl::InvalidArgumentError(absl::StrCat("rank ", root, "; accepted: 0 to ", size - 1));
  return CollectiveCall{
      .operation = CollectiveOperation::kBroadcast, .root = static_cast<uint32_t>(root), .bytes = TotalBytes(data)};
}

}  // namespace muster
