#include "muster/checkpoint/checkpoint_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/element_values.h"

namespace muster {
namespace {

constexpr int64_t kPiece = 1 << 18;  // elements read at a time

std::string TypeOf(DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(DTypeName(dtype), "[", absl::StrJoin(shape, ","), "]");
}

// Returns the row-major index of `element` in a tensor of `shape`: "[3,5]"; "[]" for a scalar.
std::string IndexOf(int64_t element, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = element % shape[i];
    element /= shape[i];
  }
  return absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

// Compares the values of one tensor in both checkpoints, piece by piece.
class ValueComparison {
 public:
  ValueComparison(DType dtype, double tolerance) : dtype_(dtype), tolerance_(tolerance) {}

  // Adds the elements from `first` on.
  void Add(int64_t first, ByteSpan a, ByteSpan b) {
    elements_ += static_cast<int64_t>(a.size() / DTypeSize(dtype_));
    if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return;
    const size_t size = DTypeSize(dtype_);
    values_a_.resize(a.size() / size);
    values_b_.resize(a.size() / size);
    ElementsToDoubles(dtype_, a, values_a_);
    ElementsToDoubles(dtype_, b, values_b_);
    for (size_t i = 0; i < values_a_.size(); ++i)
      if (std::memcmp(a.data() + i * size, b.data() + i * size, size) != 0)
        AddOne(first + static_cast<int64_t>(i), values_a_[i], values_b_[i]);
  }

  // Returns "3 of 10 values differ: …", or "" if none does.
  std::string Describe(const std::vector<int64_t>& shape) const {
    if (differing_ == 0) return "";
    return absl::StrFormat("%d of %d values differ: max abs %g, max relative %g, first at %s (%.9g and %.9g)",
                           differing_, elements_, max_absolute_, max_relative_, IndexOf(first_, shape), first_a_,
                           first_b_);
  }

 private:
  // Adds one element whose bytes differ.
  void AddOne(int64_t element, double a, double b) {
    if (std::isnan(a) && std::isnan(b)) return;
    double absolute = a == b ? 0 : std::abs(a - b);  // also correct for infinities
    // Neighbouring integers beyond 2^53 convert to the same double.
    if (dtype_ == DType::kInt64 && absolute == 0) absolute = 1;
    if (std::isnan(absolute)) absolute = std::numeric_limits<double>::infinity();
    if (absolute <= tolerance_) return;
    if (differing_++ == 0) {
      first_ = element;
      first_a_ = a;
      first_b_ = b;
    }
    const double larger = std::max(std::abs(a), std::abs(b));
    const double relative = std::isfinite(larger) && larger > 0 ? absolute / larger : absolute;
    max_absolute_ = std::max(max_absolute_, absolute);
    max_relative_ = std::max(max_relative_, relative);
  }

  const DType dtype_;
  const double tolerance_;
  std::vector<double> values_a_, values_b_;
  int64_t elements_ = 0;
  int64_t differing_ = 0;
  int64_t first_ = 0;
  double first_a_ = 0, first_b_ = 0;
  double max_absolute_ = 0;
  double max_relative_ = 0;
};

// Returns the first element after the stripe that contains `element`.
int64_t EndOfStripe(const ManifestSlot& slot, int64_t element) {
  for (const ManifestSlice& slice : slot.slices) {
    const int64_t end = slice.offset + ElementCount(slice.shape).value_or(0);
    if (element < end) return std::min(end, slice.offset + ((element - slice.offset) / slot.stride + 1) * slot.stride);
  }
  return element + 1;
}

class Diff {
 public:
  Diff(const CheckpointReader& a, const CheckpointReader& b, const DiffOptions& options)
      : a_(a), b_(b), options_(options) {}

  absl::StatusOr<std::vector<std::string>> Run() {
    const Manifest& a = a_.manifest();
    const Manifest& b = b_.manifest();
    if (a.global_step != b.global_step) Line("global step: ", a.global_step, " and ", b.global_step);
    if (a.rule.name != b.rule.name) Line("rule: '", a.rule.name, "' and '", b.rule.name, "'");
    CompareMaps("hyperparameter", a.rule.hyperparameters, b.rule.hyperparameters,
                [](double one, double other) { return absl::StrFormat("%g and %g", one, other); });
    for (const ManifestVariable& variable : a.variables) {
      const ManifestVariable* other = b.Find(variable.name);
      if (other == nullptr) OnlyIn(a_, "variable", variable.name);
      if (other != nullptr) RETURN_IF_ERROR(CompareVariables(variable, *other));
    }
    for (const ManifestVariable& variable : b.variables)
      if (a.Find(variable.name) == nullptr) OnlyIn(b_, "variable", variable.name);
    CompareMaps("extra", a.extras, b.extras, [](const std::string& one, const std::string& other) {
      return absl::StrCat(one.size(), " and ", other.size(), " characters that differ");
    });
    return lines_;
  }

 private:
  template <typename... Pieces>
  void Line(const Pieces&... pieces) {
    lines_.push_back(absl::StrCat(pieces...));
  }
  void OnlyIn(const CheckpointReader& where, const char* what, const std::string& name) {
    Line(what, " '", name, "': only in ", where.path());
  }

  template <typename Value, typename Describe>
  void CompareMaps(const char* what, const std::map<std::string, Value>& a, const std::map<std::string, Value>& b,
                   const Describe& describe) {
    for (const auto& [name, value] : a) {
      const auto other = b.find(name);
      if (other == b.end()) OnlyIn(a_, what, name);
      if (other != b.end() && other->second != value) Line(what, " '", name, "': ", describe(value, other->second));
    }
    for (const auto& [name, value] : b)
      if (!a.contains(name)) OnlyIn(b_, what, name);
  }

  absl::Status CompareVariables(const ManifestVariable& a, const ManifestVariable& b) {
    const std::string owner = absl::StrCat("variable '", a.name, "'");
    if (a.kind != b.kind) Line(owner, ": ", a.kind, " and ", b.kind);
    if (a.dtype != b.dtype || a.shape != b.shape) {
      Line(owner, ": ", TypeOf(a.dtype, a.shape), " and ", TypeOf(b.dtype, b.shape));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CompareValues(owner, a, nullptr));
    for (const ManifestSlot& slot : a.slots) {
      const ManifestSlot* other = b.FindSlot(slot.name);
      if (other == nullptr) OnlyIn(a_, "slot", absl::StrCat(a.name, "/", slot.name));
      if (other != nullptr) RETURN_IF_ERROR(CompareSlots(a, slot, *other));
    }
    for (const ManifestSlot& slot : b.slots)
      if (a.FindSlot(slot.name) == nullptr) OnlyIn(b_, "slot", absl::StrCat(a.name, "/", slot.name));
    return absl::OkStatus();
  }

  absl::Status CompareSlots(const ManifestVariable& variable, const ManifestSlot& a, const ManifestSlot& b) {
    const std::string owner = absl::StrCat("slot '", variable.name, "/", a.name, "'");
    if (a.dtype != b.dtype || (a.stride == 1) != (b.stride == 1)) {
      Line(owner, ": ", DTypeName(a.dtype), " per ", a.stride, " and ", DTypeName(b.dtype), " per ", b.stride,
           " elements");
      return absl::OkStatus();
    }
    return a.stride == 1 ? CompareValues(owner, variable, &a) : CompareCounters(owner, variable, a, b);
  }

  // Compares the variable's values, or its slot's.
  absl::Status CompareValues(const std::string& owner, const ManifestVariable& variable, const ManifestSlot* slot) {
    const DType dtype = slot != nullptr ? slot->dtype : variable.dtype;
    ASSIGN_OR_RETURN(const int64_t elements, ElementCount(variable.shape));
    const auto read = [&](const CheckpointReader& from, int64_t first, int64_t count, std::vector<std::byte>& into) {
      into.resize(count * DTypeSize(dtype));
      return slot != nullptr ? from.ReadSlotRange(variable.name, slot->name, first, count, into)
                             : from.ReadVariableRange(variable.name, first, count, into);
    };
    ValueComparison comparison(dtype, options_.tolerance);
    for (int64_t first = 0; first < elements; first += kPiece) {
      const int64_t count = std::min(kPiece, elements - first);
      RETURN_IF_ERROR(read(a_, first, count, piece_a_));
      RETURN_IF_ERROR(read(b_, first, count, piece_b_));
      comparison.Add(first, piece_a_, piece_b_);
    }
    if (const std::string what = comparison.Describe(variable.shape); !what.empty()) Line(owner, ": ", what);
    return absl::OkStatus();
  }

  // Compares one value per stripe of a slice. The stripes of the two checkpoints may end at different elements.
  absl::Status CompareCounters(const std::string& owner, const ManifestVariable& variable, const ManifestSlot& a,
                               const ManifestSlot& b) {
    ASSIGN_OR_RETURN(const int64_t elements, ElementCount(variable.shape));
    int64_t differing = 0;
    std::string first;
    for (int64_t from = 0, end = 0; from < elements; from = end) {
      // A table of rows has one counter, which stripes that weren't updated lately don't show.
      end = variable.kind == "rows" ? elements : std::min(EndOfStripe(a, from), EndOfStripe(b, from));
      ASSIGN_OR_RETURN(const int64_t count_a, a_.ReadCounter(variable.name, a.name, from, end - from));
      ASSIGN_OR_RETURN(const int64_t count_b, b_.ReadCounter(variable.name, b.name, from, end - from));
      if (count_a == count_b) continue;
      if (differing == 0) first = absl::StrCat(IndexOf(from, variable.shape), " (", count_a, " and ", count_b, ")");
      differing += end - from;
    }
    if (differing > 0) Line(owner, ": counters of ", differing, " of ", elements, " elements differ, first at ", first);
    return absl::OkStatus();
  }

  const CheckpointReader& a_;
  const CheckpointReader& b_;
  const DiffOptions options_;
  std::vector<std::string> lines_;
  std::vector<std::byte> piece_a_, piece_b_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> DiffCheckpoints(const CheckpointReader& a, const CheckpointReader& b,
                                                         const DiffOptions& options) {
  return Diff(a, b, options).Run();
}

}  // namespace muster
