#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/train/hooks.h"
#include "muster/train/hooks/options.h"

namespace muster {
namespace {

class LoggingTensorHook final : public SessionHook {
 public:
  explicit LoggingTensorHook(const LoggingTensorOptions& options)
      : options_(options),
        timer_(
            MakeTimer(options.every ? std::nullopt : options.every_n_iter, options.every, "every_n_iter and every")) {}

  absl::Status Begin() override { return timer_.status(); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    last_ = values;
    const int64_t iteration = iterations_++;
    if (!timer_->ShouldTriggerForStep(iteration, context.session().now)) return absl::OkStatus();
    return Log(values, timer_->UpdateLastTriggered(iteration, context.session().now));
  }
  absl::Status End(const SessionContext&) override {
    return options_.at_end && last_ ? Log(*last_, std::nullopt) : absl::OkStatus();
  }

 private:
  absl::Status Log(const RunValues& values, const std::optional<SecondOrStepTimer::Elapsed>& elapsed) const {
    std::vector<std::string> words;
    for (const std::string& name : options_.tensors) {
      double value;
      if (!values.Find(name, &value))
        return absl::InvalidArgumentError(absl::StrCat("LoggingTensor: there is no tensor '", name,
                                                       "'; use AddScalar in the step, or loss, step, staleness"));
      // Whole numbers (steps) in full: %.8g would print the hundred-millionth step as 1e+08.
      words.push_back(value == std::trunc(value) && std::abs(value) < 1e15 ? absl::StrFormat("%s = %.0f", name, value)
                                                                           : absl::StrFormat("%s = %.8g", name, value));
    }
    const std::string time = elapsed ? absl::StrFormat(" (%.3f sec)", absl::ToDoubleSeconds(elapsed->time)) : "";
    LogInfo(absl::StrJoin(words, ", "), time);
    return absl::OkStatus();
  }

  const LoggingTensorOptions options_;
  absl::StatusOr<SecondOrStepTimer> timer_;
  int64_t iterations_ = 0;
  std::optional<RunValues> last_;
};

}  // namespace

std::shared_ptr<SessionHook> LoggingTensor(const LoggingTensorOptions& options) {
  return std::make_shared<LoggingTensorHook>(options);
}

}  // namespace muster
