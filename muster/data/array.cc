#include "muster/data/array.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "muster/base/check.h"

namespace muster {
namespace {

constexpr size_t kArrayAlignment = 64;  // a cache line, and the widest vector register

}  // namespace

void Array::Free::operator()(std::byte* memory) const { std::free(memory); }

Array::Array(const Array& other) { *this = other; }

Array& Array::operator=(const Array& other) {
  if (this == &other) return *this;
  Reset(other.dtype_, other.shape_);
  if (other.bytes() > 0) std::memcpy(memory_.get(), other.memory_.get(), other.bytes());
  return *this;
}

Array::Array(Array&& other) noexcept
    : dtype_(other.dtype_),
      shape_(std::move(other.shape_)),
      capacity_(std::exchange(other.capacity_, 0)),
      memory_(std::move(other.memory_)) {}

Array& Array::operator=(Array&& other) noexcept {
  std::swap(dtype_, other.dtype_);
  shape_.swap(other.shape_);
  std::swap(capacity_, other.capacity_);
  memory_.swap(other.memory_);
  return *this;
}

void Array::Reset(DType dtype, std::span<const int64_t> shape) {
  dtype_ = dtype;
  if (!std::equal(shape_.begin(), shape_.end(), shape.begin(), shape.end())) shape_.assign(shape.begin(), shape.end());
  const size_t needed = static_cast<size_t>(elements()) * DTypeSize(dtype);
  if (needed <= capacity_) return;
  const size_t rounded = (needed + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kArrayAlignment, rounded)));
  capacity_ = memory_ ? rounded : 0;
  if (!memory_) throw std::bad_alloc();
}

void Array::KeepRows(int64_t rows) {
  MUSTER_CHECK(!shape_.empty() && rows >= 0 && rows <= shape_[0]);
  shape_[0] = rows;
}

int64_t Array::elements() const {
  int64_t product = 1;
  for (const int64_t extent : shape_) product *= extent;
  return product;
}

void Array::CheckType(DType asked) const { MUSTER_CHECK(asked == dtype_); }

void Array::CheckElements(size_t given) const { MUSTER_CHECK(given == static_cast<size_t>(elements())); }

}  // namespace muster
