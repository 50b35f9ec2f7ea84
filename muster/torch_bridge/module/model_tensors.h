// A model as its front hands it to a TensorSource: tensors and tables by name, and what the front knows of who refers
// to them. The front is what knows the model's kind: ModuleSource is the front for a torch::nn::Module. Plain data.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster {

class EmbeddingImpl;

struct NamedTensor {
  std::string name;
  // The same tensor may stand under several names (tied weights). Undefined: a lazy layer hasn't made it yet; it is
  // refused by its name.
  torch::Tensor tensor;
};

struct NamedTable {
  std::string path;  // of the embedding in the model; the table is the variable "<path>.weight"
  std::shared_ptr<EmbeddingImpl> embedding;
};

// How many references there are to a tensor and to its storage.
struct TensorReferences {
  size_t tensor = 0;
  size_t storage = 0;  // the tensor's own and one of the source among them: two if nothing else shares it
};

struct ModelTensors {
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  std::vector<NamedTable> tables;

  // Counts everything that may read a parameter, so that its value isn't overwritten too early
  // (TensorSource::AnnounceGradients). Empty: torch's own counts, use_count(), which are right if each holder has a
  // reference of its own. A front whose holders share one, as all of Python's do, must count them one by one. Called on
  // the thread of ComputeGradients, before the forward pass and in mid-backward, if gradients are announced at all. It
  // must not throw.
  std::function<TensorReferences(const torch::Tensor&)> count_references;

  // Announces no gradient before the backward pass has ended, so that no value is overwritten in it: for a front that
  // can't count who may read its tensors. Updates are then sent when the minibatch is over.
  bool keep_values_in_backward = false;
};

}  // namespace muster
