// What the program computes once more when a session ends in order, while the model is there: a last evaluation, say
// (TensorFlow's FinalOpsHook). Used by the session's thread; the results by whoever holds the hook, afterwards.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/train/hook/session_hook.h"

namespace muster {

class FinalOps final : public SessionHook {
 public:
  using Op = std::function<absl::StatusOr<std::any>(const SessionContext&)>;

  explicit FinalOps(std::map<std::string, Op> ops) : ops_(std::move(ops)) {}

  // In the order of their names. The first that fails (or throws) is logged, and its error is the one with which the
  // session ends.
  [[nodiscard]] absl::Status End(const SessionContext& session) override;

  // By the ops' names; empty before the end, and what was computed before one failed.
  const std::map<std::string, std::any>& values() const { return values_; }

 private:
  const std::map<std::string, Op> ops_;
  std::map<std::string, std::any> values_;
};

}  // namespace muster
