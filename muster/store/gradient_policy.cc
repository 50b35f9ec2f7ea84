#include "muster/store/gradient_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster {

absl::StatusOr<bool> DropsNonFinite(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                    const std::string& task, int64_t global_step) {
  const NonFinite policy = binding.optimizer.non_finite;
  if (policy == NonFinite::kApply) return false;
  for (size_t i = 0; i < binding.variables.size(); ++i) {
    const VariableSpec& variable = binding.variables[i];
    if (variable.kind != VariableKind::kTrainable || !IsFloatingPoint(variable.dtype)) continue;
    const ByteSpan bytes = gradient(i);
    if (bytes.empty() || std::isfinite(SumOfSquares(variable.dtype, bytes))) continue;
    const std::string what = absl::StrCat("the gradient of variable '", variable.name, "' of ", task,
                                          " after global step ", global_step, " has NaN, infinity or overflows");
    if (policy == NonFinite::kStop) return absl::InvalidArgumentError(absl::StrCat(what, " (NonFinite::kStop)"));
    LogWarning(what, ": dropped");
    return true;
  }
  return false;
}

// The norms are of whole variables, which may be partitioned over ps: only the worker has all of a gradient.
std::vector<double> ClipScales(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient) {
  const auto clips_norm = [](const RuleSpec& rule) {
    return rule.clip.kind == ClipKind::kNorm || rule.clip.kind == ClipKind::kGlobalNorm;
  };
  const OptimizerSpec& optimizer = binding.optimizer;
  const bool any =
      clips_norm(optimizer.rule) || std::any_of(optimizer.groups.begin(), optimizer.groups.end(),
                                                [&](const ParameterGroup& group) { return clips_norm(group.rule); });
  if (!any) return {};
  std::vector<double> squares(binding.variables.size());
  double all = 0;
  for (size_t i = 0; i < squares.size(); ++i) {
    if (binding.variables[i].kind != VariableKind::kTrainable) continue;
    const ByteSpan bytes = gradient(i);
    if (!bytes.empty()) all += squares[i] = SumOfSquares(binding.variables[i].dtype, bytes);
  }
  std::vector<double> scales(squares.size(), 1);
  for (size_t i = 0; i < scales.size(); ++i) {
    const ClipSpec& clip = optimizer.RuleFor(binding.variables[i].name).clip;
    scales[i] = ClipScale(clip, clip.kind == ClipKind::kGlobalNorm ? all : squares[i]);
  }
  return scales;
}

}  // namespace muster
