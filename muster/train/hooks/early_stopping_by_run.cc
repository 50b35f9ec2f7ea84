#include "muster/train/hooks/early_stopping_by_run.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/client/store_client.h"
#include "muster/train/hooks/timer_options.h"

namespace muster {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(60);

absl::StatusOr<SecondOrStepTimer> TimerOf(const StopCheck& check) {
  if (check.run_every_steps || check.run_every)
    return MakeTimer("early stopping", check.run_every_steps, check.run_every, "run_every_steps and run_every");
  return SecondOrStepTimer::Every(kDefaultInterval);
}

// Judges each run whether training shall stop. A verdict stays until the hook asks for it.
class Judge {
 public:
  virtual ~Judge() = default;
  [[nodiscard]] virtual absl::Status Check() const { return absl::OkStatus(); }
  virtual void Observe(const RunValues& values) = 0;
  // Returns why training shall stop; empty: it shall continue.
  virtual std::string Verdict(const RunValues& values) = 0;
  // The run's value that it judges; empty: only the program's function knows.
  virtual std::string metric() const { return ""; }
};

class PredicateJudge final : public Judge {
 public:
  explicit PredicateJudge(std::function<bool(const RunValues&)> should_stop) : should_stop_(std::move(should_stop)) {}
  void Observe(const RunValues&) override {}
  std::string Verdict(const RunValues& values) override {
    return should_stop_(values) ? "the program's condition holds" : "";
  }

 private:
  const std::function<bool(const RunValues&)> should_stop_;
};

// Judges one value; runs that don't have it change nothing.
class MetricJudge : public Judge {
 public:
  MetricJudge(std::string metric, int64_t min_steps) : metric_(std::move(metric)), min_steps_(min_steps) {}
  void Observe(const RunValues& values) final {
    double value = 0;
    if (verdict_.empty() && values.global_step >= min_steps_ && values.Find(metric_, &value))
      verdict_ = Weigh(value, values.global_step);
  }
  std::string Verdict(const RunValues&) final { return verdict_; }
  std::string metric() const final { return metric_; }

 private:
  // Returns a verdict as Verdict does.
  virtual std::string Weigh(double value, int64_t step) = 0;

  const std::string metric_;
  const int64_t min_steps_;
  std::string verdict_;
};

class ImprovementJudge final : public MetricJudge {
 public:
  ImprovementJudge(const NoImprovementOptions& options, bool decrease)
      : MetricJudge(options.metric, options.min_steps), options_(options), decrease_(decrease) {}
  absl::Status Check() const override {
    if (options_.max_steps_without_improvement > 0) return absl::OkStatus();
    return WrongOptionError(absl::StrCat("early stopping: max_steps_without_improvement is ",
                                         options_.max_steps_without_improvement, "; accepted: 1 or more"));
  }

 private:
  std::string Weigh(double value, int64_t step) override {
    if (!since_) since_ = step;
    if (!std::isnan(value) && (!best_ || (decrease_ ? value < *best_ : value > *best_))) {
      best_ = value;
      since_ = step;
    }
    const int64_t steps = step - *since_;
    if (steps < options_.max_steps_without_improvement) return "";
    return absl::StrCat("no ", decrease_ ? "decrease" : "increase", " in metric \"", options_.metric, "\" for ", steps,
                        " steps, which is greater than or equal to max steps (", options_.max_steps_without_improvement,
                        ") configured for early stopping");
  }

  const NoImprovementOptions options_;
  const bool decrease_;
  std::optional<double> best_;
  std::optional<int64_t> since_;  // the step of the best value, or of the first
};

class ThresholdJudge final : public MetricJudge {
 public:
  ThresholdJudge(const ThresholdOptions& options, bool higher)
      : MetricJudge(options.metric, options.min_steps), options_(options), higher_(higher) {}

 private:
  std::string Weigh(double value, int64_t step) override {
    const bool beyond = higher_ ? value > options_.threshold : value < options_.threshold;
    if (!beyond) return "";
    return absl::StrCat("at step ", step, " metric \"", options_.metric, "\" has value ", value, ", which is ",
                        higher_ ? "higher" : "lower", " than the configured threshold (", options_.threshold,
                        ") for early stopping");
  }

  const ThresholdOptions options_;
  const bool higher_;
};

class EarlyStoppingHook final : public SessionHook {
 public:
  EarlyStoppingHook(std::unique_ptr<Judge> judge, const StopCheck& check)
      : judge_(std::move(judge)), timer_(TimerOf(check)) {}

  absl::Status Begin() override {
    RETURN_IF_ERROR(timer_.status());
    return judge_->Check();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    const SessionContext& session = context.session();
    if (!session.is_chief) return absl::OkStatus();
    Note(values);
    judge_->Observe(values);
    if (!timer_->ShouldTriggerForStep(values.global_step, session.now)) return absl::OkStatus();
    timer_->UpdateLastTriggered(values.global_step, session.now);
    if (!std::exchange(asked_, true)) WarnIfUnseen();
    const std::string why = judge_->Verdict(values);
    if (why.empty()) return absl::OkStatus();
    LogInfo("Requesting early stopping at global step ", values.global_step, ": ", why, ".");
    stopped_ = true;
    stopped_at_ = values.global_step;
    context.RequestStop();
    return absl::OkStatus();
  }
  // The other workers can't see the stop any other way.
  absl::Status End(const SessionContext& session) override {
    if (asked_) WarnIfUnseen();
    if (!stopped_ || session.client == nullptr || !session.algorithm->trains_on_ps()) return absl::OkStatus();
    const absl::Status ended =
        session.client->Shutdown(absl::StrCat("early stopping, requested at global step ", stopped_at_));
    return absl::IsCancelled(ended) ? absl::OkStatus() : ended;
  }

 private:
  void Note(const RunValues& values) {
    if (metric_.empty() || seen_) return;
    double value = 0;
    seen_ = values.Find(metric_, &value);
    if (seen_) return;
    for (std::string& name : values.Names()) names_.insert(std::move(name));
  }
  // Without this warning, a mistyped metric would never stop anything, and nobody would know why.
  void WarnIfUnseen() const {
    if (!metric_.empty() && !seen_)
      LogWarning("early stopping: no run so far had '", metric_, "'; there were: ", absl::StrJoin(names_, ", "),
                 " (a scalar of the program is added with summary::Scalar or AddScalar)");
  }

  const std::unique_ptr<Judge> judge_;
  const std::string metric_ = judge_->metric();
  bool seen_ = false;
  bool asked_ = false;
  std::set<std::string> names_;  // the values that the runs had instead
  int64_t stopped_at_ = 0;
  absl::StatusOr<SecondOrStepTimer> timer_;
  bool stopped_ = false;
};

}  // namespace

std::shared_ptr<SessionHook> StopIf(std::function<bool(const RunValues&)> should_stop, const StopCheck& check) {
  return std::make_shared<EarlyStoppingHook>(std::make_unique<PredicateJudge>(std::move(should_stop)), check);
}

std::shared_ptr<SessionHook> StopIfNoDecrease(const NoImprovementOptions& options) {
  return std::make_shared<EarlyStoppingHook>(std::make_unique<ImprovementJudge>(options, true), options.check);
}

std::shared_ptr<SessionHook> StopIfNoIncrease(const NoImprovementOptions& options) {
  return std::make_shared<EarlyStoppingHook>(std::make_unique<ImprovementJudge>(options, false), options.check);
}

std::shared_ptr<SessionHook> StopIfHigher(const ThresholdOptions& options) {
  return std::make_shared<EarlyStoppingHook>(std::make_unique<ThresholdJudge>(options, true), options.check);
}

std::shared_ptr<SessionHook> StopIfLower(const ThresholdOptions& options) {
  return std::make_shared<EarlyStoppingHook>(std::make_unique<ThresholdJudge>(options, false), options.check);
}

}  // namespace muster
