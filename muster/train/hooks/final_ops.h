// Computes something once more when a session ends without an error, while the model is still there: a last evaluation,
// say (TensorFlow's FinalOpsHook). Used by the session's thread; the holder of the hook may read the results
// afterwards.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

class FinalOps final : public SessionHook {
 public:
  using Op = std::function<absl::StatusOr<std::any>(const SessionContext&)>;

  explicit FinalOps(std::map<std::string, Op> ops) : ops_(std::move(ops)) {}

  // Runs the ops in the order of their names. The first that fails (or throws) is logged, and the session ends with its
  // error.
  [[nodiscard]] absl::Status End(const SessionContext& session) override;

  // Results by the ops' names; empty before the end. If an op failed: the results of those before it.
  const std::map<std::string, std::any>& values() const { return values_; }

 private:
  const std::map<std::string, Op> ops_;
  std::map<std::string, std::any> values_;
};

}  // namespace muster
