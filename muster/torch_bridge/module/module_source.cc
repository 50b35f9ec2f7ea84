#include "muster/torch_bridge/module/module_source.h"

#include "muster/base/status_macros.h"
#include "muster/torch_bridge/module/embedding.h"
#include "muster/torch_bridge/module/torch_status.h"

namespace muster {
namespace {

absl::StatusOr<ModelTensors> TensorsOfModule(const torch::nn::Module& module) {
  return CatchTorch("reading the module's variables", [&]() -> absl::StatusOr<ModelTensors> {
    ModelTensors model;
    for (const auto& parameter : module.named_parameters())
      model.parameters.push_back({parameter.key(), parameter.value()});
    for (const auto& buffer : module.named_buffers()) model.buffers.push_back({buffer.key(), buffer.value()});
    for (const auto& child : module.named_modules())
      if (auto embedding = std::dynamic_pointer_cast<EmbeddingImpl>(child.value()))
        model.tables.push_back({child.key(), std::move(embedding)});
    return model;
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModuleSource>> ModuleSource::Create(std::shared_ptr<torch::nn::Module> module,
                                                                   ModuleSourceOptions options) {
  ASSIGN_OR_RETURN(ModelTensors model, TensorsOfModule(*module));
  auto source = std::unique_ptr<ModuleSource>(new ModuleSource(std::move(module)));
  RETURN_IF_ERROR(source->TakeOver(std::move(model), options));
  return source;
}

}  // namespace muster
