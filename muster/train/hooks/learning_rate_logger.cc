#include "muster/train/hooks/learning_rate_logger.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/base/log.h"
#include "muster/optim/optimizer_spec.h"
#include "muster/optim/schedule.h"
#include "muster/train/hooks/timer_options.h"

namespace muster {
namespace {

class LearningRateLoggerHook final : public SessionHook {
 public:
  explicit LearningRateLoggerHook(const LearningRateLoggerOptions& options)
      : timer_(
            MakeTimerOr("LearningRateLogger", 100, options.every_n_steps, options.every, "every_n_steps and every")) {}

  absl::Status Begin() override { return timer_.status(); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    const SessionContext& session = context.session();
    if (!timer_->ShouldTriggerForStep(values.global_step, session.now)) return absl::OkStatus();
    timer_->UpdateLastTriggered(values.global_step, session.now);
    const std::vector<ScalarSummary> rates = Rates(session.algorithm->binding().optimizer, values.global_step);
    const auto word = [](std::string* to, const ScalarSummary& rate) {
      absl::StrAppend(to, rate.tag, " = ", absl::StrFormat("%g", rate.value));
    };
    if (rates.empty()) return absl::OkStatus();
    LogInfo(absl::StrJoin(rates, ", ", word), ", step = ", values.global_step);
    return session.summaries == nullptr ? absl::OkStatus() : session.summaries->AddScalars(rates, values.global_step);
  }

 private:
  static std::vector<ScalarSummary> Rates(const OptimizerSpec& optimizer, int64_t step) {
    std::vector<ScalarSummary> rates;
    const auto add = [&](std::string tag, const RuleSpec& rule) {
      if (rule.kind == RuleKind::kAdd) return;
      rates.push_back({std::move(tag), static_cast<float>(LearningRateAt(rule.schedule, rule.learning_rate, step))});
    };
    add("learning_rate", optimizer.rule);
    for (const ParameterGroup& group : optimizer.groups)
      add(absl::StrCat("learning_rate/", group.variables.empty() ? "" : group.variables.front()), group.rule);
    return rates;
  }

  absl::StatusOr<SecondOrStepTimer> timer_;
};

}  // namespace

std::shared_ptr<SessionHook> LearningRateLogger(const LearningRateLoggerOptions& options) {
  return std::make_shared<LearningRateLoggerHook>(options);
}

}  // namespace muster
