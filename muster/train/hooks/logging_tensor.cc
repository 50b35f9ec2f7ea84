#include "muster/train/hooks/logging_tensor.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/train/hook_api/find_tensor.h"
#include "muster/train/hooks/timer_options.h"

namespace muster {
namespace {

class LoggingTensorHook final : public SessionHook {
 public:
  explicit LoggingTensorHook(const LoggingTensorOptions& options)
      : options_(options),
        tensors_(TensorsOf(options)),
        at_end_only_(IsAtEndOnly(options)),
        timer_(MakeTimerOr("LoggingTensor", 100, options.every_n_iter, options.every, "every_n_iter and every")) {}

  absl::Status Begin() override { return at_end_only_ ? absl::OkStatus() : timer_.status(); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (options_.at_end) last_ = values;
    const int64_t iteration = iterations_++;
    if (at_end_only_ || !timer_->ShouldTriggerForStep(iteration, context.session().now)) return absl::OkStatus();
    return Log(values, timer_->UpdateLastTriggered(iteration, context.session().now));
  }
  absl::Status End(const SessionContext&) override {
    return options_.at_end && last_ ? Log(*last_, std::nullopt) : absl::OkStatus();
  }

 private:
  struct Tensor {
    std::string tag;
    std::string name;
  };
  static std::vector<Tensor> TensorsOf(const LoggingTensorOptions& options) {
    std::vector<Tensor> tensors;
    for (const auto& [tag, name] : options.tagged_tensors) tensors.push_back({tag, name});
    if (!tensors.empty()) return tensors;
    for (const std::string& name : options.tensors) tensors.push_back({name, name});
    return tensors;
  }
  static bool IsAtEndOnly(const LoggingTensorOptions& options) {
    return options.at_end && !options.every_n_iter && !options.every;
  }
  absl::Status Log(const RunValues& values, const std::optional<SecondOrStepTimer::Elapsed>& elapsed) const {
    if (options_.formatter) {
      LogInfo(options_.formatter(values));
      return absl::OkStatus();
    }
    std::vector<std::string> words;
    for (const auto& [tag, name] : tensors_) {
      ASSIGN_OR_RETURN(const double value, FindTensor("LoggingTensor", values, name));
      // Prints whole numbers (steps) in full: %.8g would print the hundred-millionth step as 1e+08.
      words.push_back(value == std::trunc(value) && std::abs(value) < 1e15 ? absl::StrFormat("%s = %.0f", tag, value)
                                                                           : absl::StrFormat("%s = %.8g", tag, value));
    }
    const std::string time = elapsed ? absl::StrFormat(" (%.3f sec)", absl::ToDoubleSeconds(elapsed->time)) : "";
    LogInfo(absl::StrJoin(words, ", "), time);
    return absl::OkStatus();
  }

  const LoggingTensorOptions options_;
  const std::vector<Tensor> tensors_;
  const bool at_end_only_;
  absl::StatusOr<SecondOrStepTimer> timer_;
  int64_t iterations_ = 0;
  std::optional<RunValues> last_;
};

}  // namespace

std::shared_ptr<SessionHook> LoggingTensor(const LoggingTensorOptions& options) {
  return std::make_shared<LoggingTensorHook>(options);
}

}  // namespace muster
