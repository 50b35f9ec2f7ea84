#include "muster/torch_bridge/module/tensor_variables.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/torch_bridge/module/torch_dtype.h"
#include "muster/torch_bridge/module/torch_status.h"

namespace muster {
namespace {

std::string Describe(const std::string& name, const torch::Tensor& tensor) {
  return absl::StrCat("'", name, "' (shape [", absl::StrJoin(tensor.sizes(), ","), "])");
}

absl::Status Validate(const std::string& name, const torch::Tensor& tensor) {
  if (!tensor.defined())
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", name,
                     "' isn't made yet: its layer is lazy and gets its shape from the first input; run the module once "
                     "on an example before it is made a replica"));
  if (!tensor.device().is_cpu())
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", name, "' is on device ", tensor.device().str(),
        "; a module is made a replica on the CPU: move it there first, and --device says where it computes"));
  if (tensor.layout() != torch::kStrided)
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", name, "' is sparse; only its gradient may be: call to_dense() on the parameter"));
  if (!DTypeFromTorch(tensor.scalar_type()))
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", name, "' has the element type ", c10::toString(tensor.scalar_type()),
                     "; accepted: float32, float64, float16, bfloat16, int64, int32, uint8, bool"));
  if (!tensor.is_leaf())
    return absl::InvalidArgumentError(absl::StrCat("parameter '", name,
                                                   "' is the result of an operation and would never get a gradient; "
                                                   "register a leaf, e.g. tensor.detach()"));
  return absl::OkStatus();
}

// Collects tensors one by one, recording for each byte of memory the variable that occupies it.
class Collector {
 public:
  absl::Status Add(const std::string& name, const torch::Tensor& tensor, bool is_parameter) {
    RETURN_IF_ERROR(Validate(name, tensor));
    if (!names_.insert(name).second)
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors of the module are called '", name, "': give one of them another name"));
    const auto known = by_tensor_.find(tensor.unsafeGetTensorImpl());
    if (known != by_tensor_.end()) {
      variables_[known->second].aliases.push_back(name);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const size_t index, FindOrAdd(name, tensor));
    TensorVariable& variable = variables_[index];
    by_tensor_[tensor.unsafeGetTensorImpl()] = index;
    if (!variable.tensors.empty()) variable.aliases.push_back(name);
    variable.tensors.push_back(tensor);
    if (is_parameter && tensor.requires_grad())
      variable.spec.kind = VariableKind::kTrainable;
    else if (variable.tensors.size() == 1)
      variable.spec.kind = is_parameter ? VariableKind::kFrozen : VariableKind::kBuffer;
    return absl::OkStatus();
  }

  std::vector<TensorVariable> Take() { return std::move(variables_); }

 private:
  // Returns the variable of which `tensor` is another tensor, or a new one.
  absl::StatusOr<size_t> FindOrAdd(const std::string& name, const torch::Tensor& tensor) {
    if (tensor.numel() == 0) return Append(name, tensor);
    int64_t last_element = 0;
    for (int64_t d = 0; d < tensor.dim(); ++d) last_element += (tensor.size(d) - 1) * tensor.stride(d);
    const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    const uintptr_t end = begin + (last_element + 1) * tensor.element_size();

    // The ranges in the map are disjoint, so only the last one that begins before our end can meet ours.
    auto other = by_memory_.lower_bound(end);
    if (other != by_memory_.begin() && (--other)->second.end > begin) {
      const torch::Tensor& first = variables_[other->second.variable].tensors.front();
      if (other->first == begin && first.sizes() == tensor.sizes() && first.strides() == tensor.strides() &&
          first.scalar_type() == tensor.scalar_type())
        return other->second.variable;
      return absl::InvalidArgumentError(absl::StrCat(
          "variables ", Describe(variables_[other->second.variable].spec.name, first), " and ", Describe(name, tensor),
          " share a part of their memory; tied weights must share all of it in the "
          "same shape, others none: clone() one of them"));
    }
    by_memory_[begin] = {end, variables_.size()};
    return Append(name, tensor);
  }

  size_t Append(const std::string& name, const torch::Tensor& tensor) {
    TensorVariable& variable = variables_.emplace_back();
    variable.spec.name = name;
    variable.spec.dtype = *DTypeFromTorch(tensor.scalar_type());
    variable.spec.shape = tensor.sizes().vec();
    return variables_.size() - 1;
  }

  struct Range {
    uintptr_t end = 0;
    size_t variable = 0;
  };

  std::vector<TensorVariable> variables_;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<const c10::TensorImpl*, size_t> by_tensor_;
  std::map<uintptr_t, Range> by_memory_;  // by first byte
};

}  // namespace

absl::StatusOr<std::vector<TensorVariable>> FindTensorVariables(const ModelTensors& model) {
  return CatchTorch("reading the module's variables", [&]() -> absl::StatusOr<std::vector<TensorVariable>> {
    Collector collector;
    for (const NamedTensor& parameter : model.parameters)
      RETURN_IF_ERROR(collector.Add(parameter.name, parameter.tensor, /*is_parameter=*/true));
    for (const NamedTensor& buffer : model.buffers)
      RETURN_IF_ERROR(collector.Add(buffer.name, buffer.tensor, /*is_parameter=*/false));
    return collector.Take();
  });
}

}  // namespace muster
