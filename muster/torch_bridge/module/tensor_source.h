// The tensors of a model as a GradientSource: its parameters and buffers become views into flat memory that the layers
// below read and write as spans, while the model, its user and autograd notice nothing (training is bit-identical). Its
// Embeddings are tables of rows, which have no memory here. The model may compute on a GPU: the flat memory is still
// the host's, and each minibatch's inputs and results are staged between the two (docs/devices.md). Gradients stay the
// tensors that autograd made: copying them into a flat buffer was measured 8-10 % slower.
//
// A front hands the tensors over and knows where they come from: ModuleSource (module_source.h) is the one for a
// torch::nn::Module. Not thread-safe: used by the training thread only.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/algo/sources/gradient_source.h"
#include "muster/torch_bridge/module/alternating_views.h"
#include "muster/torch_bridge/module/model_tensors.h"
#include "muster/torch_bridge/module/tensor_variables.h"

namespace muster {

struct TensorSourceOptions {
  // Returns the memory for a variable's value: VariableSpec::bytes() long, aligned to 4 bytes and to its element type
  // (64 is better: MKL's last bits may depend on it). Called once per variable, in order. Empty: the source's own flat
  // buffers, one for each element type. Either way the model's present values are copied in.
  std::function<absl::StatusOr<MutableByteSpan>(const VariableSpec&)> memory;
  // Keeps what `memory` returned alive. Held as long as any tensor of the model points there, so that the model may
  // outlive the source.
  std::shared_ptr<void> memory_owner;
  // Device strings of variables by name, for VariableSpec::device.
  absl::flat_hash_map<std::string, std::string> devices;
};

class TensorSource : public GradientSource {
 public:
  // Errors: those of FindTensorVariables and `options.memory`; the tensors then stay as they were. A tensor has at most
  // one source at a time.
  static absl::StatusOr<std::unique_ptr<TensorSource>> Create(ModelTensors model, TensorSourceOptions options = {});
  ~TensorSource() override;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;

  // Parameters in the order of the front's list, then buffers, then tables (one that has several paths under its
  // first). A parameter that is (un)frozen later keeps its kind.
  const std::vector<VariableSpec>& variables() const final { return specs_; }

  // The further names of a tied variable; empty for most. Neither this nor tensor(i) exists for tables.
  const std::vector<std::string>& aliases(size_t i) const { return variables_[i].found.aliases; }

  // The model's tensor for variable i. Its data is value(i), or on a GPU a copy of it.
  const torch::Tensor& tensor(size_t i) const { return variables_[i].found.tensors.front(); }

  // For tests: kAlways stages even if the model computes on the CPU, with separate memory there.
  enum class Staging { kUnlessCpu, kAlways };
  // Sets where the model computes from now on; initially the CPU. On a GPU the model's tensors have memory of their
  // own: before a minibatch value(i) is copied to them; after it gradients and buffers are copied back to the host, and
  // none is announced earlier. Other changes to those tensors meanwhile are overwritten. Errors: torch's, running out
  // of memory among them (ResourceExhausted); everything then stays as it was.
  absl::Status ComputeOn(const torch::Device& device, Staging staging = Staging::kUnlessCpu);
  const torch::Device& device() const { return device_; }
  absl::Status ShowValues() final;  // costs nothing unless the model is staged

  // First takes over what the user has put into the model by other means, see Reattach.
  MutableByteSpan value(size_t i) final;

  // As TensorSourceOptions::memory, later. From now on the tensors of the model point there, and keep `owner`.
  bool UseMemory(size_t i, MutableByteSpan memory, std::shared_ptr<void> owner) final;

  // Sets what ComputeGradients minimises: a function of one minibatch that runs the model forward and returns a
  // scalar. Held, with everything it refers to, until the next SetLoss; an empty function releases it.
  void SetLoss(std::function<torch::Tensor()> loss) { loss_ = std::move(loss); }
  bool has_loss() const { return loss_ != nullptr; }

  // Calls `ready` in mid-backward, on the thread of ComputeGradients, as soon as gradient(i) is final, by the one hook
  // that a tensor has for it. Not called for variables without a gradient in the minibatch nor for those of several
  // tensors: every other gradient is final or empty when ComputeGradients returns. Must not throw. Empty: no calls.
  void SetGradientReady(std::function<void(size_t i)> ready);

  // Like SetGradientReady, which it replaces, but only for parameters that no later part of the backward pass can read:
  // their tensor has no more references than before the forward pass, and nothing else (a detached alias, say) shares
  // its storage. The front says how references are counted, and whether anything is announced: see ModelTensors.
  void AnnounceGradients(GradientReady ready) final;

  // Drops the old gradients, calls the loss function, runs backward. A NaN or infinite loss is returned as it is.
  // FailedPrecondition: no loss function; a variable re-allocated with another shape or type. InvalidArgument: the loss
  // isn't a scalar or depends on no trainable parameter. Exceptions of the user's function or of torch: see
  // StatusFromException. After an error all gradients are empty; those that were announced stay where they are until
  // the next call, as always.
  absl::StatusOr<double> ComputeGradients() final;

  // Only calls the loss function: for programs that train the model themselves (local_variables.h). Errors as
  // ComputeGradients; but it is no error if the loss depends on no parameter.
  absl::StatusOr<double> RunLoss();

  // Makes gradient(i) what the model's own backward has left in the tensors' grad(), until the next call of this or of
  // ComputeGradients.
  [[nodiscard]] absl::Status CollectGradients();

  absl::Status TakeValues() final;
  ByteSpan gradient(size_t i) final;
  MutableByteSpan OverwritableGradient(size_t i) final;
  bool KeepGradients() final;

  void LookUpThrough(LookUp look_up) final;
  std::span<const TableGradient> row_gradients() final { return row_gradients_; }

  // torch::load and Module::to give a tensor new memory without telling anyone, which would silently cut it off from
  // the cluster. This copies such values into value(i) and points the tensor back there. ComputeGradients and value(i)
  // do it automatically, at the cost of one comparison per tensor. FailedPrecondition naming the variable whose shape
  // or type changed, or which was moved to a device without ComputeOn.
  absl::Status Reattach();

 protected:
  TensorSource() = default;
  // For a front: makes this new source that of `model`. After an error, as of Create, it can only be destroyed.
  absl::Status TakeOver(ModelTensors model, const TensorSourceOptions& options);

 private:
  struct Variable {
    TensorVariable found;
    torch::Tensor view;      // the flat memory, in the variable's shape
    AlternatingViews views;  // of `view`
    torch::Tensor home;      // the memory of the model's tensors: as `view`, or the device's
    torch::Tensor gradient;  // dense, contiguous; undefined if the last minibatch made none
    torch::Tensor kept;      // by KeepGradients
    size_t holders = 0;      // references to the tensor when only the backward pass's own node for it is left
  };

  void AddVariables(std::vector<TensorVariable> found, const ModelTensors& model, const TensorSourceOptions& options);
  void EndTables();
  absl::Status ReattachVariable(const Variable& variable);
  absl::StatusOr<torch::Tensor> CallLoss();
  absl::StatusOr<double> RunMinibatch();
  void BringResults();
  void DropGradients();
  TensorReferences CountReferences(const torch::Tensor& tensor) const;
  void CountHolders();
  bool IsUnread(const Variable& variable) const;

  std::function<TensorReferences(const torch::Tensor&)> count_references_;
  bool keep_values_in_backward_ = false;
  std::vector<VariableSpec> specs_;
  std::vector<Variable> variables_;  // as specs_, which continues with the tables
  std::vector<std::shared_ptr<EmbeddingImpl>> tables_;
  std::vector<TableGradient> row_gradients_;
  std::vector<torch::Tensor> failed_;  // gradients of a failed minibatch, some of which were announced
  std::function<torch::Tensor()> loss_;
  std::function<void(size_t)> ready_;
  bool announces_ = false;  // ready_ was set by AnnounceGradients
  bool in_minibatch_ = false;
  torch::Device device_ = torch::kCPU;
  bool staged_ = false;
};

}  // namespace muster
