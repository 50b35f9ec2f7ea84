#include "muster/train/session/scaffold.h"

#include "muster/base/log.h"

namespace muster {

absl::Status Scaffold::Change(absl::FunctionRef<void(ScaffoldOptions&)> change) {
  if (finalized_) return absl::FailedPreconditionError("Graph is finalized and cannot be modified.");
  change(options_);
  return absl::OkStatus();
}

void Scaffold::Finalize() {
  if (!std::exchange(finalized_, true)) LogInfo("Graph was finalized.");
}

}  // namespace muster
