// Any bytes as an IDX file, plain or gzipped, give an error or an array whose shape agrees with its elements.

#include "muster/base/check.h"
#include "muster/data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto array = muster::ParseIdx({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!array.ok()) return 0;
  size_t count = 1;
  for (const size_t dimension : array->shape) count *= dimension;
  MUSTER_CHECK(count == array->elements.size());
  return 0;
}
