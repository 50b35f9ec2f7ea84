// Any torch::nn::Module as a GradientSource: the front of TensorSource (tensor_source.h, which says what it does with
// them) that finds the parameters, buffers and Embeddings of a module. Holds the module. Not thread-safe: used by the
// training thread only.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/torch_bridge/module/tensor_source.h"

namespace muster {

using ModuleSourceOptions = TensorSourceOptions;

class ModuleSource final : public TensorSource {
 public:
  // Makes a source of the module's named_parameters(), its named_buffers() and the tables of its Embeddings. Errors:
  // as TensorSource::Create; the module then stays as it was. A module has at most one source at a time.
  static absl::StatusOr<std::unique_ptr<ModuleSource>> Create(std::shared_ptr<torch::nn::Module> module,
                                                              ModuleSourceOptions options = {});

  torch::nn::Module& module() { return *module_; }

 private:
  explicit ModuleSource(std::shared_ptr<torch::nn::Module> module) : module_(std::move(module)) {}

  const std::shared_ptr<torch::nn::Module> module_;
};

}  // namespace muster
