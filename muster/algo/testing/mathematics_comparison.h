// Runs a cluster that trains (scripted_training.h) and its simulation in plain doubles (reference_training.h) by the
// same script and compares them. Test-only; used by the test's thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/testing/mathematics_cases.h"
#include "muster/algo/testing/scripted_training.h"

namespace muster {

// Describes the difference; empty if there is none.
inline std::string DifferenceOf(const std::string& whose, const std::vector<double>& values,
                                const std::vector<double>& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::abs(values[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i]))))
      return absl::StrCat(whose, ": element ", i, " is off by ", values[i] - expected[i], " from ", expected[i]);
  return {};
}

// True if the worker doesn't wait and is in the middle of a window, if there are windows.
inline bool InMidWindow(const ReferenceTraining& training, int number) {
  const ReferenceTraining::Worker& worker = training.worker(number);
  const int window = training.settings().window;
  return !worker.waiting && (window == 1 || (worker.since_commit > 0 && worker.since_commit < window));
}

// Returns the worker with fewest minibatches among those that can go on: the others wait for it.
inline int SlowestOf(const ReferenceTraining& training) {
  int slowest = -1;
  for (int number = 0; number < training.settings().total; ++number) {
    const ReferenceTraining::Worker& worker = training.worker(number);
    if (!worker.present || worker.waiting) continue;
    if (slowest < 0 || worker.minibatches < training.worker(slowest).minibatches) slowest = number;
  }
  MUSTER_CHECK(slowest >= 0);  // at least one worker always can
  return slowest;
}

// Describes what is wrong with the result that a worker got for its minibatch; empty if nothing is.
inline std::string WrongResult(const ReferenceTraining& training, int number, const StepResult& result,
                               bool exact_staleness) {
  const ReferenceTraining::Worker& worker = training.worker(number);
  // If one push releases several workers, they are counted one after the other.
  if (training.settings().bound < 0 && result.global_step != worker.known_step)
    return absl::StrCat("it was told the global step ", result.global_step, ", not ", worker.known_step);
  if (exact_staleness && static_cast<int64_t>(result.staleness) != worker.staleness)
    return absl::StrCat("it was told a staleness of ", result.staleness, ", not ", worker.staleness);
  return {};
}

inline ReferenceVector GradientOfProblem(int worker, int64_t minibatch, const ReferenceVector& at) {
  ReferenceVector g(at.size());
  for (size_t i = 0; i < g.size(); ++i)
    g[i] = ScriptedProblem().Gradient(worker, minibatch, static_cast<int>(i), at[i]);
  return g;
}

class MathematicsComparison {
 public:
  // `faults` are what every worker's requests run into. (A worker whose answer was lost isn't told its staleness.)
  MathematicsComparison(const MathematicsCase& one, bool direct, std::vector<Fault> faults = {})
      : tolerance_(one.dtype == DType::kFloat64 ? 1e-9 : 1e-6),
        exact_staleness_(faults.empty() && one.reference.fetch_window == 0 && one.reference.replicas == 0),
        training_({.choice = one.choice, .direct = direct, .dtype = one.dtype, .faults = std::move(faults)}) {
    std::vector<double> start(17);
    for (size_t i = 0; i < start.size(); ++i) start[i] = ScriptedProblem::Start(static_cast<int>(i));
    reference_ = MakeReference(one.kind, one.reference, GradientOfProblem, std::move(start));
  }

  // Each of these returns what has gone wrong; empty if nothing has.
  [[nodiscard]] std::string Join(int number) {
    const absl::Status status = training_.Join(number);
    if (!status.ok()) return std::string(status.message());
    reference_->Join(number);
    return Difference();
  }
  [[nodiscard]] std::string JoinAll() {
    for (int number = 0; number < 3; ++number)
      if (std::string wrong = Join(number); !wrong.empty()) return wrong;
    return {};
  }
  // Leaves in the middle of a window, if there are windows.
  [[nodiscard]] std::string Leave(int number) {
    if (std::string wrong = RunUntil([&] { return InMidWindow(*reference_, number); }); !wrong.empty()) return wrong;
    training_.Leave(number);
    reference_->Leave(number);
    return Difference();
  }
  [[nodiscard]] std::string Load(const std::vector<double>& values, int64_t step) {
    while (reference_->anybody_waits())
      if (std::string wrong = Step(SlowestOf(*reference_)); !wrong.empty()) return wrong;
    const absl::Status status = training_.Load(values, step);
    if (!status.ok()) return std::string(status.message());
    reference_->Load(values, step);
    return Difference();
  }
  // Runs one minibatch of a worker that waits for nobody.
  [[nodiscard]] std::string Step(int number) {
    training_.Start(number);
    reference_->Minibatch(number);
    training_.Drive();
    std::string wrong = Difference();
    if (wrong.empty() && !training_.busy(number))
      wrong = WrongResult(*reference_, number, training_.result(number), exact_staleness_);
    return wrong.empty()
               ? wrong
               : absl::StrCat("after ", reference_->updates(), " updates, a minibatch of worker ", number, ": ", wrong);
  }
  // Runs minibatches of workers in an order without a pattern, some more often than others, until the reference has
  // made `updates` more updates.
  [[nodiscard]] std::string Run(int updates) {
    const int64_t until = reference_->updates() + updates;
    return RunUntil([&] { return reference_->updates() >= until; });
  }
  // Runs minibatches until every worker is in the middle of a window, if there are windows, and none waits.
  [[nodiscard]] std::string ReachMidWindow() {
    for (;;) {
      int next = -1;
      for (int number = 0; number < 3; ++number)
        if (!reference_->worker(number).waiting && !InMidWindow(*reference_, number)) next = number;
      if (next < 0 && !reference_->anybody_waits()) return {};
      if (std::string wrong = Step(next >= 0 ? next : SlowestOf(*reference_)); !wrong.empty()) return wrong;
    }
  }
  // Ends all workers at this point.
  [[nodiscard]] std::string Finish() {
    for (int number = 0; number < 3; ++number) training_.Finish(number);
    reference_->FinishAll();
    training_.Drive(absl::Seconds(1));
    return Difference();
  }

  ScriptedTraining& training() { return training_; }
  const ReferenceTraining& reference() const { return *reference_; }

 private:
  template <typename Done>
  std::string RunUntil(Done done) {
    constexpr int kOften[] = {0, 0, 0, 1, 1, 2};
    while (!done()) {
      random_ = random_ * 1103515245 + 12345;
      const int number = kOften[(random_ >> 16) % 6];
      if (!reference_->worker(number).present || reference_->worker(number).waiting) continue;
      if (std::string wrong = Step(number); !wrong.empty()) return wrong;
    }
    return {};
  }

  // Compares the values, and which workers wait.
  std::string Difference() {
    if (std::string wrong = DifferenceOf("global", training_.Global(), reference_->global(), tolerance_);
        !wrong.empty())
      return wrong;
    for (int number = 0; number < 3; ++number) {
      const ReferenceTraining::Worker& worker = reference_->worker(number);
      if (!worker.present) continue;
      const std::string name = absl::StrCat("worker ", number);
      if (!training_.status(number).ok()) return absl::StrCat(name, ": ", training_.status(number).message());
      if (training_.busy(number) != worker.waiting)
        return absl::StrCat(name, worker.waiting ? " should wait" : " shouldn't wait");
      if (worker.waiting) continue;
      if (std::string wrong = DifferenceOf(name, training_.source(number).Values(), worker.own, tolerance_);
          !wrong.empty())
        return wrong;
    }
    // A worker that a bound holds back hasn't been counted yet.
    if (!reference_->anybody_waits() && training_.global_step() != reference_->global_step())
      return absl::StrCat("the global step is ", training_.global_step(), ", not ", reference_->global_step());
    return {};
  }

  const double tolerance_;
  const bool exact_staleness_;
  ScriptedTraining training_;
  std::unique_ptr<ReferenceTraining> reference_;
  uint32_t random_ = 1;
};

}  // namespace muster
