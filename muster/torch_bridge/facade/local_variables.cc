#include "muster/torch_bridge/facade/local_variables.h"

#include "absl/strings/str_cat.h"
#include "muster/torch_bridge/module/torch_dtype.h"

namespace muster {
namespace {

std::unique_ptr<LocalVariablesAlgorithm> MakeAlgorithm(Replica& replica, const OptimizerSpec& rule) {
  TensorSource& source = replica.source();
  for (const VariableSpec& variable : source.variables())
    if (variable.kind == VariableKind::kRows)
      ThrowIfError(absl::InvalidArgumentError(
          absl::StrCat("'", variable.name,
                       "' is a table of rows, which the ps hold alone: a model with an Embedding has no local copy; "
                       "train it with Asynchronous, or use torch::nn::Embedding")));
  return std::make_unique<LocalVariablesAlgorithm>(source, replica.placement(), rule,
                                                   [&source] { return source.RunLoss(); });
}

LocalPush ResultOrThrow(const absl::StatusOr<StorePushResult>& pushed) {
  const StorePushResult result = ValueOrThrow(pushed);
  return {result.global_step, result.staleness};
}

}  // namespace

LocalVariables::LocalVariables(Replica& replica, const LocalVariablesOptions& options)
    : LocalVariables(replica, MakeAlgorithm(replica, options.rule).release()) {}

LocalVariables::LocalVariables(Replica& replica, LocalVariablesAlgorithm* algorithm)
    : Trainer(replica, std::unique_ptr<Algorithm>(algorithm)), algorithm_(*algorithm) {}

void LocalVariables::PullGlobal() { ThrowIfError(algorithm_.PullGlobal()); }

void LocalVariables::AssignGlobalToLocal() { ThrowIfError(algorithm_.AssignGlobalToLocal()); }

LocalPush LocalVariables::PushDelta(const LocalPushOptions& options) {
  return ResultOrThrow(algorithm_.PushDelta(options));
}

void LocalVariables::AccumulateGradients() {
  ThrowIfError(replica().source().CollectGradients());
  ThrowIfError(algorithm_.AccumulateGradients());
}

LocalPush LocalVariables::PushGradients(const LocalPushOptions& options) {
  ThrowIfError(replica().source().CollectGradients());
  return ResultOrThrow(algorithm_.PushGradients(options));
}

torch::Tensor LocalVariables::Global(const std::string& name) const {
  const std::vector<VariableSpec>& variables = algorithm_.binding().variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    const ByteSpan bytes = algorithm_.global(i);
    if (variables[i].name != name || bytes.empty()) continue;
    return torch::from_blob(const_cast<std::byte*>(bytes.data()), variables[i].shape, TorchDType(variables[i].dtype))
        .clone();
  }
  ThrowIfError(absl::NotFoundError(
      absl::StrCat("there is no global variable '", name, "', or the session that brings it hasn't started")));
  return {};
}

}  // namespace muster
