#include "muster/optim/kernels/value_math.h"

#include <algorithm>

#include "muster/base/check.h"
#include "muster/optim/kernels/half.h"
#include "muster/optim/kernels/kernel.h"

namespace muster {
namespace {

struct DifferenceLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* __restrict into, const Loose<T>* __restrict a,
                                         const Loose<T>* __restrict b, size_t count, T scale) {
    for (size_t i = 0; i < count; ++i) into[i].value = scale * (a[i].value - b[i].value);
  }
};

struct AddScaledLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* __restrict into, const Loose<T>* __restrict a, size_t count,
                                         T scale) {
    for (size_t i = 0; i < count; ++i) into[i].value = into[i].value + scale * a[i].value;
  }
};

struct SetLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* into, size_t count, T value) {
    for (size_t i = 0; i < count; ++i) into[i].value = value;
  }
};

struct ScaleLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(Loose<T>* into, size_t count, T scale) {
    for (size_t i = 0; i < count; ++i) into[i].value = scale * into[i].value;
  }
};

// A block of halves as floats; WriteTo converts it back.
class FloatBlock {
 public:
  FloatBlock(DType dtype, const std::byte* halves, size_t count) {
    FloatsFromHalves(dtype, halves, floats_.data(), count);
  }
  Loose<float>* data() { return reinterpret_cast<Loose<float>*>(floats_.data()); }
  void WriteTo(DType dtype, std::byte* halves, size_t count) const {
    HalvesFromFloats(dtype, floats_.data(), halves, count);
  }

 private:
  HalfBlock floats_;
};

// Calls `run(from, count)` for each block of halves of a span: offset in bytes, number of elements.
template <typename Run>
void ForHalfBlocks(size_t bytes, const Run& run) {
  for (size_t from = 0; from < bytes; from += kHalfBlock * kHalfBytes)
    run(from, std::min(kHalfBlock, (bytes - from) / kHalfBytes));
}

// Calls `run` with a zero of the type in which `dtype` is computed; returns false for halves, which need blocks.
template <typename Run>
bool InWholeTypes(DType dtype, const Run& run) {
  MUSTER_CHECK(IsFloatingPoint(dtype));
  if (dtype == DType::kFloat32) {
    run(float{});
  } else if (dtype == DType::kFloat64) {
    run(double{});
  } else {
    return false;
  }
  return true;
}

}  // namespace

void SetDifference(DType dtype, MutableByteSpan into, ByteSpan a, ByteSpan b, double scale) {
  MUSTER_CHECK(a.size() == into.size() && b.size() == into.size());
  const bool done = InWholeTypes(dtype, [&](auto zero) {
    using T = decltype(zero);
    const size_t count = into.size() / sizeof(T);
    RunLoop<DifferenceLoop>(Elements<T>(into, count), Elements<T>(a, count), Elements<T>(b, count), count,
                            static_cast<T>(scale));
  });
  if (done) return;
  ForHalfBlocks(into.size(), [&](size_t from, size_t count) {
    FloatBlock left(dtype, a.data() + from, count), right(dtype, b.data() + from, count), result = left;
    RunLoop<DifferenceLoop>(result.data(), static_cast<const Loose<float>*>(left.data()),
                            static_cast<const Loose<float>*>(right.data()), count, static_cast<float>(scale));
    result.WriteTo(dtype, into.data() + from, count);
  });
}

void AddScaled(DType dtype, MutableByteSpan into, ByteSpan a, double scale) {
  MUSTER_CHECK(a.size() == into.size());
  const bool done = InWholeTypes(dtype, [&](auto zero) {
    using T = decltype(zero);
    const size_t count = into.size() / sizeof(T);
    RunLoop<AddScaledLoop>(Elements<T>(into, count), Elements<T>(a, count), count, static_cast<T>(scale));
  });
  if (done) return;
  ForHalfBlocks(into.size(), [&](size_t from, size_t count) {
    FloatBlock sum(dtype, into.data() + from, count), addend(dtype, a.data() + from, count);
    RunLoop<AddScaledLoop>(sum.data(), static_cast<const Loose<float>*>(addend.data()), count,
                           static_cast<float>(scale));
    sum.WriteTo(dtype, into.data() + from, count);
  });
}

void SetAll(DType dtype, MutableByteSpan into, double value) {
  const bool done = InWholeTypes(dtype, [&](auto zero) {
    using T = decltype(zero);
    const size_t count = into.size() / sizeof(T);
    RunLoop<SetLoop>(Elements<T>(into, count), count, static_cast<T>(value));
  });
  if (done) return;
  HalfBlock same;
  same.fill(static_cast<float>(value));
  ForHalfBlocks(into.size(),
                [&](size_t from, size_t count) { HalvesFromFloats(dtype, same.data(), into.data() + from, count); });
}

void ScaleBy(DType dtype, MutableByteSpan into, double scale) {
  const bool done = InWholeTypes(dtype, [&](auto zero) {
    using T = decltype(zero);
    const size_t count = into.size() / sizeof(T);
    RunLoop<ScaleLoop>(Elements<T>(into, count), count, static_cast<T>(scale));
  });
  if (done) return;
  ForHalfBlocks(into.size(), [&](size_t from, size_t count) {
    FloatBlock block(dtype, into.data() + from, count);
    RunLoop<ScaleLoop>(block.data(), count, static_cast<float>(scale));
    block.WriteTo(dtype, into.data() + from, count);
  });
}

}  // namespace muster
