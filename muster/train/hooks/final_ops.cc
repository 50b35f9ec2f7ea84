#include "muster/train/hooks/final_ops.h"

#include <exception>

#include "muster/base/log.h"

namespace muster {

absl::Status FinalOps::End(const SessionContext& session) {
  for (const auto& [name, op] : ops_) {
    try {
      absl::StatusOr<std::any> value = op(session);
      if (!value.ok()) {
        LogError("the final op '", name, "' has failed: ", value.status().message());
        return value.status();
      }
      values_[name] = *std::move(value);
    } catch (const std::exception& error) {
      LogError("the final op '", name, "' has failed: ", error.what());
      throw;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
