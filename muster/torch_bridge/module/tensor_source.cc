#include "muster/torch_bridge/module/tensor_source.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/torch_bridge/module/embedding.h"
#include "muster/torch_bridge/module/torch_dtype.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/torch_bridge/module/torch_version.h"

namespace muster {
namespace {

// A cache line, as torch's own allocator aligns: MKL's last bits may depend on the alignment of its operands.
constexpr int64_t kAlignment = 64;

// To the storage of a variable's value: those of its tensor and of the source's view.
constexpr size_t kOwnStorageReferences = 2;

// Returns a tensor over `memory` that keeps `owner` alive. Each view has a storage of its own, so that saving one
// tensor doesn't save the whole flat buffer.
torch::Tensor View(MutableByteSpan memory, const VariableSpec& spec, std::shared_ptr<void> owner) {
  return torch::from_blob(
      memory.data(), spec.shape, [owner = std::move(owner)](void*) {}, TorchDType(spec.dtype));
}

absl::StatusOr<std::vector<torch::Tensor>> SuppliedViews(const std::vector<TensorVariable>& variables,
                                                         const TensorSourceOptions& options) {
  std::vector<torch::Tensor> views;
  for (const TensorVariable& variable : variables) {
    const VariableSpec& spec = variable.spec;
    ASSIGN_OR_RETURN(const MutableByteSpan memory, options.memory(spec));
    if (memory.size() != static_cast<size_t>(spec.bytes()))
      return absl::InvalidArgumentError(absl::StrCat("variable '", spec.name, "' needs ", spec.bytes(),
                                                     " bytes, but was given memory of ", memory.size()));
    if (reinterpret_cast<uintptr_t>(memory.data()) % DTypeSize(spec.dtype) != 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "variable '", spec.name, "' was given memory that isn't aligned to ", DTypeSize(spec.dtype), " bytes"));
    views.push_back(View(memory, spec, options.memory_owner));
  }
  return views;
}

std::vector<torch::Tensor> OwnViews(const std::vector<TensorVariable>& variables) {
  const auto padded = [](const VariableSpec& spec) {
    return (spec.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::map<DType, int64_t> bytes;
  for (const TensorVariable& variable : variables) bytes[variable.spec.dtype] += padded(variable.spec);

  struct Buffer {
    std::shared_ptr<torch::Tensor> memory;
    std::byte* next = nullptr;
  };
  std::map<DType, Buffer> buffers;
  for (const auto& [dtype, size] : bytes) {
    Buffer& buffer = buffers[dtype];
    buffer.memory = std::make_shared<torch::Tensor>(torch::zeros({size}, torch::kUInt8));
    buffer.next = static_cast<std::byte*>(buffer.memory->data_ptr());
  }
  std::vector<torch::Tensor> views;
  for (const TensorVariable& variable : variables) {
    Buffer& buffer = buffers[variable.spec.dtype];
    views.push_back(View({buffer.next, static_cast<size_t>(variable.spec.bytes())}, variable.spec, buffer.memory));
    buffer.next += padded(variable.spec);
  }
  return views;
}

// Returns the gradient as plain memory of the variable's shape: makes sparse ones dense and strided ones contiguous,
// and sums those of tensors that share the variable's memory. The usual gradient is passed through without a copy.
torch::Tensor DenseGradient(const std::vector<torch::Tensor>& tensors) {
  torch::Tensor sum;
  for (const torch::Tensor& tensor : tensors) {
    torch::Tensor gradient = tensor.grad();
    if (!gradient.defined()) continue;
    if (gradient.layout() != torch::kStrided) gradient = gradient.to_dense();
    sum = sum.defined() ? sum + gradient : gradient;
  }
  if (!sum.defined()) return sum;
  if (sum.is_neg()) [[unlikely]]
    sum = sum.resolve_neg();
  return sum.contiguous();
}

// A variable of several tensors has a gradient for each; their sum is final only when the backward pass has ended.
bool HasOneGradient(const TensorVariable& variable) {
  return variable.spec.kind == VariableKind::kTrainable && variable.tensors.size() == 1;
}

absl::Status NoParameterError() {
  return absl::InvalidArgumentError(
      "the loss depends on no trainable parameter of the module: compute it from the module's output without "
      "detach() or item(), and with autograd on");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorSource>> TensorSource::Create(ModelTensors model, TensorSourceOptions options) {
  auto source = std::unique_ptr<TensorSource>(new TensorSource());
  RETURN_IF_ERROR(source->TakeOver(std::move(model), options));
  return source;
}

absl::Status TensorSource::TakeOver(ModelTensors model, const TensorSourceOptions& options) {
  ASSIGN_OR_RETURN(std::vector<TensorVariable> found, FindTensorVariables(model));
  return CatchTorch("moving the module's variables", [&] {
    std::vector<torch::Tensor> views;
    if (options.memory) {
      ASSIGN_OR_RETURN(views, SuppliedViews(found, options));
    } else {
      views = OwnViews(found);
    }
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < found.size(); ++i) views[i].copy_(found[i].tensors.front());

    count_references_ = std::move(model.count_references);
    keep_values_in_backward_ = model.keep_values_in_backward;
    AddVariables(std::move(found), model, options);
    for (size_t i = 0; i < views.size(); ++i) {
      Variable& variable = variables_[i];
      variable.view = std::move(views[i]);
      variable.home = variable.view;
      for (torch::Tensor& tensor : variable.found.tensors) tensor.set_data(variable.home);
    }
    return absl::OkStatus();
  });
}

TensorSource::~TensorSource() {
  SetGradientReady(nullptr);
  LookUpThrough({});
}

void TensorSource::AddVariables(std::vector<TensorVariable> found, const ModelTensors& model,
                                const TensorSourceOptions& options) {
  const auto add_spec = [&](VariableSpec spec) {
    const auto device = options.devices.find(spec.name);
    if (device != options.devices.end()) spec.device = device->second;
    specs_.push_back(std::move(spec));
  };
  for (TensorVariable& variable : found) {
    add_spec(variable.spec);
    variables_.push_back({.found = std::move(variable)});
  }
  for (const NamedTable& table : model.tables) {
    if (std::find(tables_.begin(), tables_.end(), table.embedding) != tables_.end()) continue;
    add_spec(table.embedding->SpecOf(table.path));
    tables_.push_back(table.embedding);
  }
}

void TensorSource::LookUpThrough(LookUp look_up) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    const size_t variable = variables_.size() + i;
    EmbeddingImpl::LookUp one;
    if (look_up) one = [look_up, variable](const RowsOut& rows) { return look_up(variable, rows); };
    tables_[i]->LookUpThrough(specs_[variable].name, std::move(one));
  }
}

void TensorSource::EndTables() {
  for (size_t i = 0; i < tables_.size(); ++i)
    if (const RowsIn rows = tables_[i]->EndMinibatch(); !rows.indices.empty())
      row_gradients_.push_back({variables_.size() + i, rows});
}

MutableByteSpan TensorSource::value(size_t i) {
  if (i >= variables_.size()) return {};
  // A change of shape or type can't be reported from here; ComputeGradients will.
  ReattachVariable(variables_[i]).IgnoreError();
  return {static_cast<std::byte*>(variables_[i].view.mutable_data_ptr()), static_cast<size_t>(specs_[i].bytes())};
}

bool TensorSource::UseMemory(size_t i, MutableByteSpan memory, std::shared_ptr<void> owner) {
  if (i >= variables_.size() || memory.size() != static_cast<size_t>(specs_[i].bytes())) return false;
  return CatchTorch("moving a variable",
                    [&] {
                      Variable& variable = variables_[i];
                      variable.views.Move(variable.view, memory, owner, [&] { return View(memory, specs_[i], owner); });
                      if (staged_) return absl::OkStatus();
                      variable.home = variable.view;
                      const torch::NoGradGuard no_grad;
                      for (torch::Tensor& tensor : variable.found.tensors) tensor.set_data(variable.home);
                      return absl::OkStatus();
                    })
      .ok();
}

absl::Status TensorSource::ComputeOn(const torch::Device& device, Staging staging) {
  const bool staged = staging == Staging::kAlways || !device.is_cpu();
  if (device == device_ && staged == staged_) return absl::OkStatus();
  RETURN_IF_ERROR(Reattach());
  return CatchTorch(absl::StrCat("moving the module to ", device.str()), [&] {
    const torch::NoGradGuard no_grad;
    // Copies all of them before the first tensor moves: the device's memory may not be enough.
    std::vector<torch::Tensor> homes;
    for (const Variable& variable : variables_)
      homes.push_back(staged ? variable.view.to(device, variable.view.scalar_type(), /*non_blocking=*/false,
                                                /*copy=*/true)
                             : variable.view);
    SetGradientReady(nullptr);
    DropGradients();
    for (size_t i = 0; i < variables_.size(); ++i) {
      variables_[i].home = std::move(homes[i]);
      for (torch::Tensor& tensor : variables_[i].found.tensors) tensor.set_data(variables_[i].home);
    }
    device_ = device;
    staged_ = staged;
    return absl::OkStatus();
  });
}

absl::Status TensorSource::ShowValues() {
  if (!staged_) return absl::OkStatus();
  return CatchTorch(absl::StrCat("copying values to ", device_.str()), [this] {
    const torch::NoGradGuard no_grad;
    // CUDA has read ordinary memory when the call returns; the rest of the copy is ordered before the device's later
    // computing.
    for (const Variable& variable : variables_) variable.home.copy_(variable.view, /*non_blocking=*/true);
    return absl::OkStatus();
  });
}

// Copies gradients to the host's memory, which torch page-locks if they come from a GPU, and buffers to where their
// values are read; starts all copies, then waits once.
void TensorSource::BringResults() {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < variables_.size(); ++i) {
    Variable& variable = variables_[i];
    if (variable.gradient.defined())
      variable.gradient = variable.gradient.to(torch::kCPU, variable.gradient.scalar_type(), /*non_blocking=*/true,
                                               /*copy=*/true);
    if (specs_[i].kind == VariableKind::kBuffer) variable.view.copy_(variable.home, /*non_blocking=*/true);
  }
  if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
}

void TensorSource::AnnounceGradients(GradientReady ready) {
  if (!ready || keep_values_in_backward_) return SetGradientReady(nullptr);
  SetGradientReady([this, ready = std::move(ready)](size_t i) {
    if (IsUnread(variables_[i])) ready(i);
  });
  announces_ = ready_ != nullptr;
}

TensorReferences TensorSource::CountReferences(const torch::Tensor& tensor) const {
  if (count_references_) return count_references_(tensor);
  return {tensor.use_count(), tensor.storage().use_count()};
}

void TensorSource::CountHolders() {
  for (Variable& variable : variables_) {
    if (!HasOneGradient(variable.found)) continue;
    const torch::Tensor& tensor = variable.found.tensors.front();
    variable.holders = CountReferences(tensor).tensor + (HasGradientNode(tensor) ? 0 : 1);
  }
}

// A node of the graph releases what it has saved once it has run, before the nodes after it run. Whatever else shares
// the storage (a detached alias that the program has kept since an earlier minibatch, say) may be read by a node
// without any new reference to it.
bool TensorSource::IsUnread(const Variable& variable) const {
  const TensorReferences now = CountReferences(variable.found.tensors.front());
  return now.tensor <= variable.holders && now.storage <= kOwnStorageReferences;
}

void TensorSource::SetGradientReady(std::function<void(size_t)> ready) {
  // When autograd has made a gradient's tensor, a GPU may not have computed it, and it isn't in the host's memory.
  if (staged_) ready = nullptr;
  announces_ = false;
  // A tensor has one hook, which may be the program's own if none is this source's.
  if (!ready && !ready_) return;
  ready_ = std::move(ready);
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!HasOneGradient(variables_[i].found)) continue;
    if (!ready_) {
      SetGradientReadyHook(tensor(i), nullptr);
      continue;
    }
    SetGradientReadyHook(tensor(i), [this, i] {
      // The program may run a backward pass of its own between two minibatches: nothing of it is sent.
      if (!in_minibatch_) return;
      variables_[i].gradient = DenseGradient(variables_[i].found.tensors);
      ready_(i);
    });
  }
}

absl::StatusOr<double> TensorSource::ComputeGradients() {
  if (!loss_)
    return absl::FailedPreconditionError("there is no loss function to compute gradients of; call SetLoss first");
  failed_.clear();
  DropGradients();
  RETURN_IF_ERROR(Reattach());
  RETURN_IF_ERROR(ShowValues());
  for (const auto& table : tables_) table->BeginMinibatch();
  absl::StatusOr<double> loss = CatchTorch("computing the loss and its gradients", [this] { return RunMinibatch(); });
  absl::Status ended = CatchTorch("collecting gradients of rows", [this] { return EndTables(), absl::OkStatus(); });
  if (loss.ok() && !ended.ok()) loss = std::move(ended);
  // A gradient of zeros counts as one.
  const auto has_gradient = [](const Variable& variable) { return variable.gradient.defined(); };
  const bool depends = !row_gradients_.empty() || std::any_of(variables_.begin(), variables_.end(), has_gradient);
  if (loss.ok() && !depends) loss = NoParameterError();
  if (loss.ok()) return loss;
  for (Variable& variable : variables_) failed_.push_back(std::move(variable.gradient));
  DropGradients();
  return loss;
}

absl::StatusOr<torch::Tensor> TensorSource::CallLoss() {
  torch::Tensor loss = loss_();
  if (!loss.defined())
    return absl::InvalidArgumentError("the loss function returned an undefined tensor, not a scalar");
  if (loss.numel() != 1)
    return absl::InvalidArgumentError(absl::StrCat("the loss function returned a tensor of shape [",
                                                   absl::StrJoin(loss.sizes(), ","),
                                                   "], not a scalar: reduce it, e.g. with mean()"));
  return loss;
}

absl::StatusOr<double> TensorSource::RunLoss() {
  if (!loss_) return absl::FailedPreconditionError("there is no loss function to run; call SetLoss first");
  RETURN_IF_ERROR(Reattach());
  return CatchTorch("running the program's step", [this]() -> absl::StatusOr<double> {
    const torch::AutoGradMode grad_mode(true);
    ASSIGN_OR_RETURN(const torch::Tensor loss, CallLoss());
    return loss.item<double>();
  });
}

absl::Status TensorSource::CollectGradients() {
  return CatchTorch("collecting gradients", [this] {
    for (size_t i = 0; i < variables_.size(); ++i)
      if (specs_[i].kind == VariableKind::kTrainable)
        variables_[i].gradient = DenseGradient(variables_[i].found.tensors);
    if (staged_) BringResults();
    return absl::OkStatus();
  });
}

absl::Status TensorSource::TakeValues() {
  if (!staged_) return absl::OkStatus();
  return CatchTorch(absl::StrCat("copying values from ", device_.str()), [this] {
    const torch::NoGradGuard no_grad;
    for (const Variable& variable : variables_) variable.view.copy_(variable.home);
    return absl::OkStatus();
  });
}

absl::StatusOr<double> TensorSource::RunMinibatch() {
  const torch::AutoGradMode grad_mode(true);
  in_minibatch_ = true;
  const absl::Cleanup over = [this] { in_minibatch_ = false; };
  if (announces_) CountHolders();
  ASSIGN_OR_RETURN(const torch::Tensor loss, CallLoss());
  if (!loss.requires_grad()) return NoParameterError();
  loss.backward();
  for (size_t i = 0; i < variables_.size(); ++i)
    if (specs_[i].kind == VariableKind::kTrainable && !variables_[i].gradient.defined())
      variables_[i].gradient = DenseGradient(variables_[i].found.tensors);
  if (staged_) BringResults();
  return loss.item<double>();
}

void TensorSource::DropGradients() {
  row_gradients_.clear();
  for (Variable& variable : variables_) {
    variable.gradient.reset();
    for (torch::Tensor& tensor : variable.found.tensors) tensor.mutable_grad().reset();
  }
}

bool TensorSource::KeepGradients() {
  for (Variable& variable : variables_) variable.kept = variable.gradient;
  return true;
}

ByteSpan TensorSource::gradient(size_t i) {
  if (i >= variables_.size()) return {};
  const torch::Tensor& gradient = variables_[i].gradient;
  if (!gradient.defined()) return {};
  return {static_cast<const std::byte*>(gradient.const_data_ptr()), gradient.nbytes()};
}

MutableByteSpan TensorSource::OverwritableGradient(size_t i) {
  if (i >= variables_.size()) return {};
  const torch::Tensor& gradient = variables_[i].gradient;
  // Autograd may give two variables views of one tensor: overwriting one would change the other.
  if (!gradient.defined() || gradient.storage().use_count() != 1) return {};
  return {static_cast<std::byte*>(gradient.mutable_data_ptr()), gradient.nbytes()};
}

absl::Status TensorSource::Reattach() {
  for (const Variable& variable : variables_) RETURN_IF_ERROR(ReattachVariable(variable));
  return absl::OkStatus();
}

absl::Status TensorSource::ReattachVariable(const Variable& variable) {
  const void* memory = variable.home.const_data_ptr();
  for (torch::Tensor tensor : variable.found.tensors) {
    if (tensor.const_data_ptr() == memory) [[likely]]
      continue;
    const torch::Tensor& view = variable.view;
    // A staged module may be given values in the host's memory or its device's.
    const bool moved = !tensor.device().is_cpu() && tensor.device() != device_;
    if (tensor.sizes() != view.sizes() || tensor.scalar_type() != view.scalar_type() || moved)
      return absl::FailedPreconditionError(
          absl::StrCat("variable '", variable.found.spec.name, "' was ", DTypeName(variable.found.spec.dtype), " [",
                       absl::StrJoin(view.sizes(), ","), "] on the CPU when the module was made a replica and is now ",
                       c10::toString(tensor.scalar_type()), " [", absl::StrJoin(tensor.sizes(), ","), "] on ",
                       tensor.device().str(), ": load and convert a module before, or into the same type and shape; a ",
                       "module goes to a GPU by --device"));
    RETURN_IF_ERROR(CatchTorch(absl::StrCat("taking over variable '", variable.found.spec.name, "'"), [&] {
      const torch::NoGradGuard no_grad;
      view.copy_(tensor);
      if (staged_) variable.home.copy_(view);
      tensor.set_data(variable.home);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

}  // namespace muster
