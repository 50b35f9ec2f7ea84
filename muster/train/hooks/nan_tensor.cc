#include "muster/train/hooks/nan_tensor.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/train/hook_api/find_tensor.h"

namespace muster {
namespace {

class NanTensorHook final : public SessionHook {
 public:
  explicit NanTensorHook(const NanTensorOptions& options) : options_(options) {}

  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    ASSIGN_OR_RETURN(const double value, FindTensor("NanTensor", values, options_.tensor));
    if (!std::isnan(value)) return absl::OkStatus();
    LogError("Model diverged with ", options_.tensor, " = NaN.");
    if (options_.fail_on_nan_loss)
      return absl::InternalError(absl::StrCat("NaN ", options_.tensor, " during training."));
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
