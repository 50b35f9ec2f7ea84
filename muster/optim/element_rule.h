// What all rules share: the loops over elements, rows and types. A rule's own file defines what happens to one element,
// as a Formula:
//
//   struct Formula {
//     static constexpr size_t kSlots = 1;
//     template <typename T> struct Numbers {                                  // hyperparameters, rounded to T once
//       [[gnu::always_inline]] void operator()(T& p, T g, T* slots) const;    // one element; no branches
//     };
//     template <typename T> Numbers<T> At(const UpdateRule::Step&) const;     // for this update
//   };
//
// The formula that heads such a file: η is the learning rate of the step, g the gradient as UpdateRule::Step and weight
// decay leave it, t the number of the update; slots start at 0 unless said otherwise.
//
// From the Formula ElementRule makes vectorised loops over floats and doubles (kernel.h); halves go through blocks of
// floats. Stateless and thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "muster/base/check.h"
#include "muster/optim/kernels/half.h"
#include "muster/optim/kernels/kernel.h"
#include "muster/optim/update_rule.h"

namespace muster {

// The gradient as the formula sees it: scaled, limited, with weight decay. With neutral values (1, ∞, 0) it changes no
// bit of a result and, compared with the memory accesses, costs no time.
template <typename T>
struct GradientFilter {
  T scale;
  T limit;
  T decay;

  [[gnu::always_inline]] T operator()(T g, T p) const {
    T seen = g * scale;
    seen = seen > limit ? limit : seen;  // this form keeps a NaN
    seen = seen < -limit ? -limit : seen;
    return seen + decay * p;
  }
};

template <typename T, size_t kSlots>
using SlotPointers = std::array<Loose<T>*, kSlots>;

struct ElementLoop {
  template <typename T, size_t kSlots, typename Numbers>
  [[gnu::always_inline]] static void Run(Loose<T>* p, SlotPointers<T, kSlots> slots, const Loose<T>* g, size_t count,
                                         GradientFilter<T> filter, Numbers rule) {
    Unpack(p, slots, g, count, filter, rule, std::make_index_sequence<kSlots>());
  }

 private:
  template <typename T, size_t kSlots, typename Numbers, size_t... kSlot>
  [[gnu::always_inline]] static void Unpack(Loose<T>* p, const SlotPointers<T, kSlots>& slots, const Loose<T>* g,
                                            size_t count, GradientFilter<T> filter, Numbers rule,
                                            std::index_sequence<kSlot...>) {
    Walk(p, g, count, filter, rule, slots[kSlot]...);
  }

  // Takes the pointers one by one, because only parameters can promise that they don't overlap.
  template <typename T, typename Numbers, typename... Slots>
  [[gnu::always_inline]] static void Walk(Loose<T>* __restrict p, const Loose<T>* __restrict g, size_t count,
                                          GradientFilter<T> filter, Numbers rule, Slots* __restrict... slots) {
    for (size_t i = 0; i < count; ++i) {
      T value = p[i].value;
      T state[sizeof...(slots) + 1] = {slots[i].value...};
      rule(value, filter(g[i].value, value), state);
      p[i].value = value;
      [[maybe_unused]] const T* next = state;
      ((slots[i].value = *next++), ...);
    }
  }
};

// Rows may lie anywhere in the variable. Prefetching their cache lines this many rows ahead hides most of the wait.
constexpr size_t kRowsAhead = 8;

[[gnu::always_inline]] inline void PrefetchForWriting(const std::byte* bytes, size_t size) {
  for (size_t at = 0; at < size; at += 64) __builtin_prefetch(bytes + at, 1);
}

struct RowsLoop {
  template <typename T, size_t kSlots, typename Numbers>
  [[gnu::always_inline]] static void Run(Loose<T>* p, SlotPointers<T, kSlots> slots,
                                         const UpdateRule::RowUpdates* updates, GradientFilter<T> filter,
                                         Numbers rule) {
    const size_t width = updates->width;
    for (size_t k = 0; k < updates->rows.size(); ++k) {
      if (k + kRowsAhead < updates->rows.size()) {
        const size_t ahead = updates->rows[k + kRowsAhead] * width;
        PrefetchForWriting(reinterpret_cast<const std::byte*>(p + ahead), width * sizeof(T));
        for (const Loose<T>* slot : slots)
          PrefetchForWriting(reinterpret_cast<const std::byte*>(slot + ahead), width * sizeof(T));
      }
      const size_t first = updates->rows[k] * width;
      SlotPointers<T, kSlots> row_slots = slots;
      for (auto& slot : row_slots) slot += first;
      ElementLoop::Run(p + first, row_slots, reinterpret_cast<const Loose<T>*>(updates->gradients[k]), width, filter,
                       rule);
    }
  }
};

template <typename Formula>
class ElementRule : public UpdateRule {
 public:
  ElementRule(RuleKind kind, const Formula& formula, std::vector<SlotSpec> slots, double weight_decay)
      : kind_(kind), formula_(formula), slots_(std::move(slots)), weight_decay_(weight_decay) {
    MUSTER_CHECK(slots_.size() == kSlots);
  }

  RuleKind kind() const override { return kind_; }
  const std::vector<SlotSpec>& slots() const override { return slots_; }

  void Apply(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
             const Step& step) const override {
    MUSTER_CHECK(IsFloatingPoint(dtype));
    MUSTER_CHECK(step.t >= 1);
    if (dtype == DType::kFloat32) return ApplyWhole<float>(value, slots, gradient, step);
    if (dtype == DType::kFloat64) return ApplyWhole<double>(value, slots, gradient, step);
    const size_t count = gradient.size() / kHalfBytes;
    MUSTER_CHECK(value.size() == count * kHalfBytes && gradient.size() == value.size());
    const auto pointers = Pointers<float>(slots, count);
    const auto update = UpdateAt<float>(step);
    HalfBlock floats;
    for (size_t from = 0; from < count; from += kHalfBlock) {
      const size_t some = std::min(kHalfBlock, count - from);
      FloatsFromHalves(dtype, gradient.data() + from * kHalfBytes, floats.data(), some);
      ApplyToHalves(dtype, value.data() + from * kHalfBytes, Shifted(pointers, from),
                    reinterpret_cast<const Loose<float>*>(floats.data()), some, update);
    }
  }

  void ApplyToRows(DType dtype, MutableByteSpan value, std::span<const MutableByteSpan> slots,
                   const RowUpdates& updates, const Step& step) const override {
    MUSTER_CHECK(IsFloatingPoint(dtype));
    MUSTER_CHECK(step.t >= 1);
    MUSTER_CHECK(updates.rows.size() == updates.gradients.size());
    if (dtype == DType::kFloat32) return ApplyRowsOf<float>(value, slots, updates, step);
    if (dtype == DType::kFloat64) return ApplyRowsOf<double>(value, slots, updates, step);
    const auto pointers = Pointers<float>(slots, value.size() / kHalfBytes);
    const auto update = UpdateAt<float>(step);
    for (size_t k = 0; k < updates.rows.size(); ++k) {
      if (k + kRowsAhead < updates.rows.size())
        PrefetchRow(value.data(), slots, updates.rows[k + kRowsAhead] * updates.width, updates.width);
      for (size_t from = 0; from < updates.width; from += kHalfBlock) {
        const size_t first = updates.rows[k] * updates.width + from;
        const Loose<float>* gradient = reinterpret_cast<const Loose<float>*>(updates.gradients[k]) + from;
        ApplyToHalves(dtype, value.data() + first * kHalfBytes, Shifted(pointers, first), gradient,
                      std::min(kHalfBlock, updates.width - from), update);
      }
    }
  }

 private:
  static constexpr size_t kSlots = Formula::kSlots;

  template <typename T>
  struct Update {
    GradientFilter<T> filter;
    typename Formula::template Numbers<T> numbers;
  };

  template <typename T>
  static SlotPointers<T, kSlots> Pointers(std::span<const MutableByteSpan> slots, size_t count) {
    MUSTER_CHECK(slots.size() == kSlots);
    SlotPointers<T, kSlots> pointers = {};
    for (size_t s = 0; s < kSlots; ++s) pointers[s] = Elements<T>(slots[s], count);
    return pointers;
  }

  template <typename T>
  static SlotPointers<T, kSlots> Shifted(SlotPointers<T, kSlots> pointers, size_t by) {
    for (auto& pointer : pointers) pointer += by;
    return pointers;
  }

  static void PrefetchRow(const std::byte* halves, std::span<const MutableByteSpan> slots, size_t first, size_t width) {
    PrefetchForWriting(halves + first * kHalfBytes, width * kHalfBytes);
    for (const MutableByteSpan slot : slots)
      PrefetchForWriting(slot.data() + first * sizeof(float), width * sizeof(float));
  }

  template <typename T>
  Update<T> UpdateAt(const Step& step) const {
    return {{static_cast<T>(step.gradient_scale), static_cast<T>(step.clip_value), static_cast<T>(weight_decay_)},
            formula_.template At<T>(step)};
  }

  template <typename T>
  void ApplyWhole(MutableByteSpan value, std::span<const MutableByteSpan> slots, ByteSpan gradient,
                  const Step& step) const {
    const size_t count = gradient.size() / sizeof(T);
    const Update<T> update = UpdateAt<T>(step);
    RunLoop<ElementLoop>(Elements<T>(value, count), Pointers<T>(slots, count), Elements<T>(gradient, count), count,
                         update.filter, update.numbers);
  }

  template <typename T>
  void ApplyRowsOf(MutableByteSpan value, std::span<const MutableByteSpan> slots, const RowUpdates& updates,
                   const Step& step) const {
    const size_t count = value.size() / sizeof(T);
    const Update<T> update = UpdateAt<T>(step);
    RunLoop<RowsLoop>(Elements<T>(value, count), Pointers<T>(slots, count), &updates, update.filter, update.numbers);
  }

  // For at most one block of halves.
  static void ApplyToHalves(DType dtype, std::byte* halves, SlotPointers<float, kSlots> slots,
                            const Loose<float>* gradient, size_t count, const Update<float>& update) {
    HalfBlock floats;
    FloatsFromHalves(dtype, halves, floats.data(), count);
    RunLoop<ElementLoop>(reinterpret_cast<Loose<float>*>(floats.data()), slots, gradient, count, update.filter,
                         update.numbers);
    HalvesFromFloats(dtype, floats.data(), halves, count);
  }

  const RuleKind kind_;
  const Formula formula_;
  const std::vector<SlotSpec> slots_;
  const double weight_decay_;
};

}  // namespace muster
