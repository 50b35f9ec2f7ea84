#include "muster/estimator/distributed/evaluator.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/wait_notices.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/estimator/distributed/checkpoint_evaluation.h"
#include "muster/estimator/distributed/wait_until_stopped.h"
#include "muster/estimator/training_end.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

// By then a cluster that is starting has its first checkpoint, so that there is no needless warning.
constexpr absl::Duration kFirstNoCheckpoint = absl::Seconds(10);
// After a checkpoint: the chief may save rarely.
constexpr absl::Duration kNoCheckpointInterval = absl::Minutes(10);

// Decides from model_dir whether training has ended.
class EndOfTraining {
 public:
  EndOfTraining(const std::string& model_dir, const EvaluatorOptions& options, const Clock& clock)
      : model_dir_(model_dir), options_(options), clock_(clock), started_(clock.Now()), at_start_(Read()) {}

  // True if training has ended and the checkpoint at `newest` is the last, or one of max_steps.
  bool IsReachedBy(const std::string& newest) {
    const int64_t step = StepOfCheckpointPath(newest);
    if (options_.max_steps && step >= *options_.max_steps) {
      why_ = absl::StrCat("global_step=", step, " >= train max_steps=", *options_.max_steps);
      return true;
    }
    const std::optional<TrainingEnd> end = Read();
    if (!end || (options_.max_steps && end->max_steps != options_.max_steps)) return false;
    if (end == at_start_ && !GraceIsOver(*end)) return false;
    if (!end->global_step && newest.empty())
      throw Error(absl::FailedPreconditionError(
          absl::StrCat("training in ", model_dir_, " has ended (", end->why, ") and left no checkpoint to evaluate")));
    why_ = absl::StrCat("training has ended at global_step=", step, " (", end->why, ")");
    return step >= end->global_step.value_or(0);
  }
  const std::string& why() const { return why_; }

 private:
  std::optional<TrainingEnd> Read() const { return ValueOrThrow(ReadTrainingEnd(PosixFileSystem(), model_dir_)); }
  bool GraceIsOver(const TrainingEnd& end) {
    if (clock_.Now() >= started_ + options_.resume_grace) return true;
    if (!std::exchange(grace_said_, true))
      LogInfo("Training in ", model_dir_, " had ended before this evaluator began, at step ",
              end.global_step.value_or(0), " (", end.why,
              "): it ends with that checkpoint, unless training goes on within ",
              absl::FormatDuration(options_.resume_grace), ".");
    return false;
  }

  const std::string model_dir_;
  const EvaluatorOptions& options_;
  const Clock& clock_;
  const absl::Time started_;
  const std::optional<TrainingEnd> at_start_;
  bool grace_said_ = false;
  std::string why_;
};

class EvaluatorLoop {
 public:
  EvaluatorLoop(Estimator& estimator, const EvalSpec& spec, const EvaluatorOptions& options)
      : options_(options),
        clock_(options.clock != nullptr ? *options.clock : RealClock()),
        model_dir_(estimator.model_dir()),
        started_(clock_.Now()),
        end_(model_dir_, options, clock_),
        evaluation_(estimator, spec),
        last_news_(started_),
        first_(started_, kFirstNoCheckpoint),
        warn_at_(first_.next()) {}

  TrainAndEvaluateResults Run(const std::function<bool(absl::Duration)>& wait) {
    absl::Time due = started_ + options_.start_delay;
    LogInfo("Evaluates the checkpoints of ", model_dir_, " as they come",
            due > started_ ? absl::StrCat(", the first in ", absl::FormatDuration(options_.start_delay)) : "", ".");
    do {
      const Sight sight = Poll();
      const bool fresh = !sight.newest.empty() && sight.newest != evaluation_.last();
      const bool again = options_.same_again && !sight.newest.empty() && !sight.ended;
      if (fresh || again) {
        const absl::Time now = clock_.Now();
        if (sight.ended || now >= due) {
          due = now + options_.throttle;
          if (Evaluate(sight) && options_.go_on && !options_.go_on(evaluation_.results().eval)) break;
        }
      } else if (!sight.ended) {
        WaitPatiently(sight);
      }
      if (sight.ended && sight.newest == evaluation_.last()) {
        evaluation_.Finish();
        LogInfo("Exiting evaluation: ", end_.why(), ".");
        break;
      }
    } while (wait(options_.poll));
    return evaluation_.results();
  }

 private:
  struct Sight {
    std::string newest;  // the path of a checkpoint; empty: there is none
    bool ended = false;  // there will be no newer one
  };

  Sight Poll() {
    Sight sight{.newest = Newest()};
    if (sight.newest != seen_) {
      seen_ = sight.newest;
      last_news_ = clock_.Now();
      warn_at_ = last_news_ + kNoCheckpointInterval;
    }
    sight.ended = end_.IsReachedBy(sight.newest);
    return sight;
  }
  // Looks at names only: the evaluation finds out whether the files are complete.
  std::string Newest() const {
    if (!PosixFileSystem().Exists(model_dir_)) return "";
    const auto newest = FindCheckpoint(PosixFileSystem(), model_dir_);
    if (absl::IsFailedPrecondition(newest.status())) return "";
    return ValueOrThrow(newest);
  }
  // Returns false if the checkpoint is gone, and there is a newer one.
  bool Evaluate(const Sight& sight) {
    try {
      evaluation_.Evaluate(sight.newest, sight.ended);
    } catch (const Error& error) {
      const bool unreadable = absl::IsNotFound(error.status()) || absl::IsDataLoss(error.status());
      if (!unreadable || Newest() == sight.newest) throw;
      LogWarning(sight.newest, " was deleted before it was evaluated, because newer ones were saved: ", error.what());
      return false;
    }
    last_news_ = clock_.Now();
    warn_at_ = last_news_ + kNoCheckpointInterval;
    return true;
  }
  // Nothing to evaluate: logs that from time to time, and throws when it has lasted too long.
  void WaitPatiently(const Sight& sight) {
    const absl::Time now = clock_.Now();
    if (now - last_news_ >= options_.patience)
      throw Error(absl::DeadlineExceededError(absl::StrCat("gave up: ", Nothing(sight, now))));
    if (now < warn_at_) return;
    const bool never = sight.newest.empty() && first_.Due(now);
    warn_at_ = never ? first_.next() : now + kNoCheckpointInterval;
    LogWarning(Nothing(sight, now), " Will start an evaluation when a checkpoint is ready.");
  }
  std::string Nothing(const Sight& sight, absl::Time now) const {
    const std::string waited = absl::FormatDuration(absl::Trunc(now - last_news_, absl::Seconds(1)));
    if (sight.newest.empty())
      return absl::StrCat(
          "Estimator is not trained yet: no checkpoint in ", model_dir_, " for ", waited,
          ". Is that the model_dir of the chief, on a file system that both see? Without such a file system the "
          "evaluator must run on the chief's host.");
    return absl::StrCat("No new checkpoint in ", model_dir_, " since ", sight.newest, ", which is evaluated, for ",
                        waited, ".");
  }

  const EvaluatorOptions& options_;
  const Clock& clock_;
  const std::string model_dir_;
  const absl::Time started_;
  EndOfTraining end_;
  CheckpointEvaluation evaluation_;
  std::string seen_;      // the newest checkpoint at the last look
  absl::Time last_news_;  // when there was a new one, or an evaluation had ended
  WaitNotices first_;     // until there is a checkpoint
  absl::Time warn_at_;
};

}  // namespace

TrainAndEvaluateResults EvaluateContinuously(Estimator& estimator, const EvalSpec& spec,
                                             const EvaluatorOptions& options) {
  EvaluatorLoop loop(estimator, spec, options);
  if (options.wait) return loop.Run(options.wait);
  WaitUntilStopped real;
  return loop.Run([&real](absl::Duration time) { return real.For(time); });
}

}  // namespace muster
