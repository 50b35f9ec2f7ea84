// Tensors as Python has them: objects of torch.Tensor that own memory of libtorch. The only file of the binding that
// includes torch is tensors.cc, because torch's headers cost 18 s in each file. Call with the GIL held.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster::python {

struct NewTensor {
  nanobind::object object;  // a torch.Tensor on the CPU, contiguous, without a gradient
  MutableByteSpan bytes;    // its memory, not initialised; it lives as long as the object
};

// Throws what torch throws, which Python sees as a RuntimeError: there isn't that much memory.
NewTensor MakeTensor(DType dtype, const std::vector<int64_t>& shape);

}  // namespace muster::python
