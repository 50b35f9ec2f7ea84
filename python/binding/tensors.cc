#include "python/binding/tensors.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/python_variable.h>

#include "muster/torch_bridge/module/torch_dtype.h"

namespace muster::python {

NewTensor MakeTensor(DType dtype, const std::vector<int64_t>& shape) {
  const at::Tensor tensor = at::empty(shape, at::TensorOptions(TorchDType(dtype)));
  PyObject* object = THPVariable_Wrap(tensor);
  if (object == nullptr) throw nanobind::python_error();
  return {.object = nanobind::steal(object),
          .bytes = {static_cast<std::byte*>(tensor.mutable_data_ptr()), static_cast<size_t>(tensor.nbytes())}};
}

}  // namespace muster::python
