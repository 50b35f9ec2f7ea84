// A dense array with its own memory: the input pipeline's value, of one example or of a batch of them. Copies are deep
// (into the existing memory if it is large enough), moves are cheap. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

class Array {
 public:
  // Makes an array without elements: shape [0], float32.
  Array() = default;
  Array(const Array& other);
  Array& operator=(const Array& other);
  // An array that was moved from has no elements until it is Reset or assigned to.
  Array(Array&& other) noexcept;
  Array& operator=(Array&& other) noexcept;  // swaps with `other`

  // `values` are row-major, as many as the product of `shape`.
  template <typename T>
  static Array Of(std::vector<int64_t> shape, std::span<const T> values) {
    Array array;
    array.Reset(DTypeOf<T>(), shape);
    array.CheckElements(values.size());
    if (!values.empty()) std::memcpy(array.data().data(), values.data(), array.bytes());
    return array;
  }
  template <typename T>
  static Array Of(std::vector<int64_t> shape, const std::vector<T>& values) {
    return Of(std::move(shape), std::span<const T>(values));
  }
  // Makes an array of one value, shape [].
  template <typename T>
  static Array Scalar(T value) {
    return Of({}, std::span<const T>(&value, 1));
  }

  // Changes type and shape. Reuses the memory if it is large enough. The elements are undefined.
  void Reset(DType dtype, std::span<const int64_t> shape);
  void Reset(DType dtype, std::initializer_list<int64_t> shape) {
    Reset(dtype, std::span<const int64_t>(shape.begin(), shape.size()));
  }
  // Keeps only the first `rows` along the first dimension, which must have at least as many.
  void KeepRows(int64_t rows);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t elements() const;  // 1 for shape []
  size_t bytes() const { return memory_ ? static_cast<size_t>(elements()) * DTypeSize(dtype_) : 0; }

  // Aligned to 64 bytes. Valid until the next Reset, move or destruction.
  MutableByteSpan data() { return {memory_.get(), bytes()}; }
  ByteSpan data() const { return {memory_.get(), bytes()}; }
  // T must be the type of the elements; anything else is a bug.
  template <typename T>
  std::span<T> As() {
    CheckType(DTypeOf<T>());
    return {reinterpret_cast<T*>(memory_.get()), bytes() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> As() const {
    CheckType(DTypeOf<T>());
    return {reinterpret_cast<const T*>(memory_.get()), bytes() / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  template <typename T>
  static constexpr DType DTypeOf();
  void CheckType(DType asked) const;
  void CheckElements(size_t given) const;

  DType dtype_ = DType::kFloat32;
  std::vector<int64_t> shape_{0};
  size_t capacity_ = 0;  // bytes of memory_
  std::unique_ptr<std::byte[], Free> memory_;
};

template <typename T>
constexpr DType Array::DTypeOf() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::kFloat32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kFloat64;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return DType::kInt64;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return DType::kInt32;
  } else if constexpr (std::is_same_v<T, bool>) {
    return DType::kBool;
  } else {
    static_assert(std::is_same_v<T, uint8_t>, "no type of elements");
    return DType::kUInt8;
  }
}

}  // namespace muster
