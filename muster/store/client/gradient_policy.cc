#include "muster/store/client/gradient_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"

namespace muster {
namespace {

bool ClipsByNorm(const OptimizerSpec& optimizer) {
  const auto clips = [](const RuleSpec& rule) {
    return rule.clip.kind == ClipKind::kNorm || rule.clip.kind == ClipKind::kGlobalNorm;
  };
  return clips(optimizer.rule) || std::any_of(optimizer.groups.begin(), optimizer.groups.end(),
                                              [&](const ParameterGroup& group) { return clips(group.rule); });
}

}  // namespace

absl::Status CheckGradients(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient) {
  for (size_t i = 0; i < binding.variables.size(); ++i) {
    const VariableSpec& variable = binding.variables[i];
    if (variable.kind != VariableKind::kTrainable) continue;
    const size_t bytes = gradient(i).size();
    if (bytes != 0 && bytes != variable.bytes())
      return absl::InvalidArgumentError(absl::StrCat("the gradient of variable '", variable.name, "' has ", bytes,
                                                     " bytes, but ", DTypeName(variable.dtype), " [",
                                                     absl::StrJoin(variable.shape, ","), "] has ", variable.bytes(),
                                                     ": it must have the variable's shape and type"));
  }
  return absl::OkStatus();
}

bool NeedsAllGradients(const OptimizerSpec& optimizer) {
  return optimizer.non_finite != NonFinite::kApply || ClipsByNorm(optimizer);
}

void FindSquares(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient, const WireStaging* wire,
                 std::vector<double>& squares) {
  squares.clear();
  if (!NeedsAllGradients(binding.optimizer)) return;
  squares.resize(binding.variables.size());
  for (size_t i = 0; i < squares.size(); ++i) {
    const VariableSpec& variable = binding.variables[i];
    if (variable.kind != VariableKind::kTrainable || !IsFloatingPoint(variable.dtype)) continue;
    const ByteSpan bytes = gradient(i);
    if (bytes.empty()) continue;
    squares[i] = SumOfSquares(variable.dtype, bytes);
    if (wire != nullptr && wire->Overflows(i, bytes, squares[i])) squares[i] = std::numeric_limits<double>::infinity();
  }
}

absl::StatusOr<bool> DropsNonFinite(const ModelBinding& binding, const std::vector<double>& squares,
                                    const std::string& task, int64_t global_step) {
  const NonFinite policy = binding.optimizer.non_finite;
  if (policy == NonFinite::kApply) return false;
  const auto broken = std::find_if_not(squares.begin(), squares.end(), [](double sum) { return std::isfinite(sum); });
  if (broken == squares.end()) return false;
  const VariableSpec& variable = binding.variables[broken - squares.begin()];
  const std::string what = absl::StrCat("the gradient of variable '", variable.name, "' of ", task,
                                        " after global step ", global_step, " has NaN, infinity or overflows");
  if (policy == NonFinite::kStop) return absl::InvalidArgumentError(absl::StrCat(what, " (NonFinite::kStop)"));
  LogWarning(what, ": dropped");
  return true;
}

// The norms are of whole variables, which may be partitioned over ps: only the worker has the whole gradient.
void FindClipScales(const ModelBinding& binding, const std::vector<double>& squares, std::vector<double>& scales) {
  const OptimizerSpec& optimizer = binding.optimizer;
  scales.clear();
  if (!ClipsByNorm(optimizer)) return;
  const double all = std::accumulate(squares.begin(), squares.end(), 0.0);
  scales.resize(squares.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    const ClipSpec& clip = optimizer.RuleFor(binding.variables[i].name).clip;
    scales[i] = ClipScale(clip, clip.kind == ClipKind::kGlobalNorm ? all : squares[i]);
  }
}

}  // namespace muster
