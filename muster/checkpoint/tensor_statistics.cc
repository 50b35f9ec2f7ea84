#include "muster/checkpoint/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/element_values.h"

namespace muster {
namespace {

constexpr int64_t kStatisticsPiece = 1 << 18;  // elements read at a time

class Accumulator {
 public:
  void Add(std::span<const double> values) {
    statistics_.values += static_cast<int64_t>(values.size());
    for (const double value : values) {
      if (std::isnan(value)) {
        ++statistics_.nans;
        continue;
      }
      const bool first = numbers_++ == 0;
      statistics_.min = first ? value : std::min(statistics_.min, value);
      statistics_.max = first ? value : std::max(statistics_.max, value);
      sum_ += value;
      squares_ += value * value;
    }
  }
  TensorStatistics Finish() {
    if (numbers_ > 0) statistics_.mean = sum_ / static_cast<double>(numbers_);
    statistics_.norm = std::sqrt(squares_);
    return statistics_;
  }

 private:
  TensorStatistics statistics_;
  int64_t numbers_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

absl::StatusOr<TensorStatistics> OfCounter(const CheckpointReader& checkpoint, const std::string& variable,
                                           int64_t total, const ManifestSlot& slot) {
  Accumulator accumulator;
  for (const ManifestSlice& slice : slot.slices) {
    ASSIGN_OR_RETURN(const int64_t elements, ElementCount(slice.shape));
    if (slice.row_step != 1) {  // any range has rows of all slices: use the largest value
      ASSIGN_OR_RETURN(const int64_t value, checkpoint.ReadCounter(variable, slot.name, 0, total));
      const double number = static_cast<double>(value);
      accumulator.Add({&number, 1});
      return accumulator.Finish();
    }
    for (int64_t from = 0; from < elements; from += slot.stride) {
      ASSIGN_OR_RETURN(const int64_t value, checkpoint.ReadCounter(variable, slot.name, slice.offset + from,
                                                                   std::min(slot.stride, elements - from)));
      const double number = static_cast<double>(value);
      accumulator.Add({&number, 1});
    }
  }
  return accumulator.Finish();
}

}  // namespace

absl::StatusOr<TensorStatistics> StatisticsOf(const CheckpointReader& checkpoint, const std::string& variable,
                                              const std::string& slot) {
  const ManifestVariable* found = checkpoint.manifest().Find(variable);
  if (found == nullptr)
    return absl::NotFoundError(absl::StrCat(checkpoint.path(), " has no variable '", variable, "'"));
  const ManifestSlot* of_slot = found->FindSlot(slot);
  if (!slot.empty() && of_slot == nullptr)
    return absl::NotFoundError(absl::StrCat(checkpoint.path(), ": variable '", variable, "' has no slot '", slot, "'"));
  ASSIGN_OR_RETURN(const int64_t elements, ElementCount(found->shape));
  if (of_slot != nullptr && of_slot->stride != 1) return OfCounter(checkpoint, variable, elements, *of_slot);

  const DType dtype = of_slot != nullptr ? of_slot->dtype : found->dtype;
  std::vector<std::byte> bytes(std::min(kStatisticsPiece, elements) * DTypeSize(dtype));
  std::vector<double> values(std::min(kStatisticsPiece, elements));
  Accumulator accumulator;
  for (int64_t first = 0; first < elements; first += kStatisticsPiece) {
    const int64_t count = std::min(kStatisticsPiece, elements - first);
    const MutableByteSpan into = MutableByteSpan(bytes).first(count * DTypeSize(dtype));
    RETURN_IF_ERROR(of_slot != nullptr ? checkpoint.ReadSlotRange(variable, slot, first, count, into)
                                       : checkpoint.ReadVariableRange(variable, first, count, into));
    ElementsToDoubles(dtype, into, std::span(values).first(count));
    accumulator.Add(std::span(values).first(count));
  }
  return accumulator.Finish();
}

}  // namespace muster
