#include "muster/optim/sparse_rows.h"

#include <bit>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/optim/kernels/half.h"
#include "muster/optim/kernels/kernel.h"
#include "muster/optim/rule_descriptor.h"

namespace muster {
namespace {

absl::Status Check(const UpdateRule& rule, const RowsOfVariable& variable, std::span<const int64_t> indices,
                   ByteSpan gradients) {
  if (!SupportsRows(rule.kind()))
    return absl::InvalidArgumentError(
        absl::StrCat("rule ", RuleName(rule.kind()), " can't update single rows; accepted: ", RulesForRows()));
  if (!IsFloatingPoint(variable.dtype))
    return absl::InvalidArgumentError(absl::StrCat("rows of type ", DTypeName(variable.dtype),
                                                   " can't be updated; accepted: float32, float64, float16, bfloat16"));
  const size_t element = DTypeSize(variable.dtype);
  if (variable.width < 1 || static_cast<size_t>(variable.width) > std::numeric_limits<uint32_t>::max() ||
      variable.value.size() % (variable.width * element) != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("a variable of ", variable.value.size() / element, " elements has no rows of ", variable.width));
  if (gradients.size() != indices.size() * variable.width * element)
    return absl::InvalidArgumentError(absl::StrCat("gradients of ", indices.size(), " rows of ", variable.width, " ",
                                                   DTypeName(variable.dtype), " are not ", gradients.size(),
                                                   " bytes long"));
  if (indices.size() > std::numeric_limits<uint32_t>::max() / 2)
    return absl::InvalidArgumentError(
        absl::StrCat(indices.size(), " rows in one update; accepted: at most 2147483647"));
  const int64_t num_rows = static_cast<int64_t>(variable.value.size() / (variable.width * element));
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= num_rows)
      return absl::InvalidArgumentError(absl::StrCat("row ", indices[i], " (index ", i, " of ", indices.size(),
                                                     ") is out of range: the variable has ", num_rows, " rows"));
  return absl::OkStatus();
}

// The distinct rows in order of first occurrence, found through an open-addressing table that is at most half full. It
// needs one or two looks per index; sorting pairs of index and position needs several per binary digit of their number.
class DistinctRows {
 public:
  explicit DistinctRows(size_t num_indices)
      : shift_(64 - std::bit_width(std::bit_ceil(2 * num_indices + 1) - 1)),
        table_(std::bit_ceil(2 * num_indices + 1), kNone) {
    rows_.reserve(num_indices);
  }

  // Returns the number of `row` among the distinct ones; the next free number if it is new.
  uint32_t NumberOf(int64_t row) {
    // Fibonacci hashing: the upper bits of the product depend on all bits of the row.
    size_t at = (static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15) >> shift_;
    while (table_[at] != kNone && rows_[table_[at]] != row) at = (at + 1) & (table_.size() - 1);
    if (table_[at] == kNone) {
      table_[at] = static_cast<uint32_t>(rows_.size());
      rows_.push_back(row);
    }
    return table_[at];
  }

  const std::vector<int64_t>& rows() const { return rows_; }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  const int shift_;
  std::vector<uint32_t> table_;
  std::vector<int64_t> rows_;
};

template <typename T>
void AddRow(const std::byte* from, std::byte* to, size_t width) {
  const auto* addend = reinterpret_cast<const Loose<T>*>(from);
  auto* sum = reinterpret_cast<Loose<T>*>(to);
  for (size_t i = 0; i < width; ++i) sum[i].value += addend[i].value;
}

// One gradient row per distinct row, in the type that rules compute in: the given row, or a sum kept here.
class SummedRows {
 public:
  SummedRows(DType dtype, size_t width, std::span<const int64_t> indices, ByteSpan gradients)
      : wide_(SlotDType(dtype)), width_(width), row_bytes_(width * DTypeSize(wide_)), distinct_(indices.size()) {
    if (wide_ != dtype) {
      floats_.resize(indices.size() * width);
      FloatsFromHalves(dtype, gradients.data(), floats_.data(), floats_.size());
      gradients = AsBytes(floats_.data(), floats_.size());
    }
    gradients_.reserve(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) Add(indices[i], gradients.data() + i * row_bytes_);
  }

  UpdateRule::RowUpdates updates() const { return {width_, distinct_.rows(), gradients_}; }

 private:
  void Add(int64_t row, const std::byte* gradient) {
    const uint32_t number = distinct_.NumberOf(row);
    if (number == gradients_.size()) {
      gradients_.push_back(gradient);
      is_sum_.push_back(false);
      return;
    }
    if (!is_sum_[number]) {
      sums_.emplace_back(gradients_[number], gradients_[number] + row_bytes_);
      gradients_[number] = sums_.back().data();
      is_sum_[number] = true;
    }
    std::byte* sum = const_cast<std::byte*>(gradients_[number]);  // points into sums_
    if (wide_ == DType::kFloat64) {
      AddRow<double>(gradient, sum, width_);
    } else {
      AddRow<float>(gradient, sum, width_);
    }
  }

  const DType wide_;
  const size_t width_;
  const size_t row_bytes_;
  DistinctRows distinct_;
  std::vector<float> floats_;  // all gradients, if they are halves
  std::vector<const std::byte*> gradients_;
  std::vector<bool> is_sum_;
  std::vector<std::vector<std::byte>> sums_;
};

}  // namespace

bool SupportsRows(RuleKind kind) {
  const RuleDescriptor* rule = FindRule(kind);
  return rule != nullptr && rule->works_on_rows;
}

std::string RulesForRows() {
  return RuleNames([](const RuleDescriptor& rule) { return rule.works_on_rows; });
}

absl::Status ApplyRows(const UpdateRule& rule, const RowsOfVariable& variable, std::span<const int64_t> indices,
                       ByteSpan gradients, const UpdateRule::Step& step) {
  RETURN_IF_ERROR(Check(rule, variable, indices, gradients));
  const SummedRows summed(variable.dtype, variable.width, indices, gradients);
  rule.ApplyToRows(variable.dtype, variable.value, variable.slots, summed.updates(), step);
  return absl::OkStatus();
}

}  // namespace muster
