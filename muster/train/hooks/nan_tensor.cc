#include <cmath>

#include "muster/base/log.h"
#include "muster/train/hooks.h"

namespace muster {
namespace {

class NanTensorHook final : public SessionHook {
 public:
  explicit NanTensorHook(const NanTensorOptions& options) : options_(options) {}

  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (!std::isnan(values.loss)) return absl::OkStatus();
    LogError("Model diverged with loss = NaN.");
    if (options_.fail_on_nan_loss) return absl::InternalError("NaN loss during training.");
    context.RequestStop();
    return absl::OkStatus();
  }

 private:
  const NanTensorOptions options_;
};

}  // namespace

std::shared_ptr<SessionHook> NanTensor(const NanTensorOptions& options) {
  return std::make_shared<NanTensorHook>(options);
}

}  // namespace muster
