#include "tests/cluster/convergence_run.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/algo/choice/make_algorithm.h"
#include "muster/base/status_macros.h"
#include "muster/collective/testing/group_in_threads.h"
#include "muster/store/testing/simulated_store.h"
#include "tests/cluster/digits_network.h"

namespace muster {
namespace {

std::string TaskName(int worker) { return absl::StrCat("worker:", worker); }

AlgorithmPlan PlanOf(const ConvergenceSetting& setting, int worker) {
  const AlgorithmChoice choice{.name = setting.name, .parameters = setting.parameters};
  AlgorithmCluster cluster{.workers = kConvergenceWorkers, .worker = static_cast<uint32_t>(worker)};
  if (setting.name == "all_reduce") cluster.num_ps = 0;
  return PlanAlgorithm(choice, cluster).value();
}

// True if no worker can go on without all the others.
bool InStep(const AlgorithmPlan& plan) {
  const CommitSpec& commit = plan.commit;
  return commit.gate.kind == GateKind::kSynchronous || commit.deterministic || commit.staleness_bound == 0U;
}

std::unique_ptr<Algorithm> MakeAlgorithmOf(const AlgorithmPlan& plan, GradientSource& source,
                                           AllReduceAlgorithm::Join join) {
  PlacementResult placement = *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {});
  // A thread of its own would drive the loop that all workers share here.
  if (plan.way == AlgorithmWay::kPipelined)
    return std::make_unique<PipelinedAlgorithm>(source, std::move(placement), plan.server_rule,
                                                PipelinedOptions{.thread = false});
  return MakeAlgorithm(plan, source, std::move(placement), std::move(join));
}

class Worker {
 public:
  Worker(SimulatedStore& store, const AlgorithmPlan& plan, const LabelledRows& train, int worker,
         AllReduceAlgorithm::Join join = {})
      : network_(train, static_cast<size_t>(worker), kConvergenceWorkers),
        client_(store.Client(TaskName(worker))),
        algorithm_(MakeAlgorithmOf(plan, network_, std::move(join))) {}

  // Does what a session does. `chief`: the worker with whose values all begin.
  absl::Status Start(bool chief) {
    RETURN_IF_ERROR(client_->Join(chief || !algorithm_->trains_on_ps()));
    client_->Bind(algorithm_->binding());
    if (chief) RETURN_IF_ERROR(client_->Initialize(/*global_step=*/0, /*minibatches=*/0, nullptr));
    RETURN_IF_ERROR(algorithm_->ShareModel(*client_));
    RETURN_IF_ERROR(client_->AwaitReady(absl::InfiniteFuture()).status());
    algorithm_->Begin(*client_);
    return client_->Pull(PullWhat::kEverything);
  }
  void Step() {
    if (status_.ok()) status_ = algorithm_->Step(*client_).status();
  }
  // Commits what is left in the last window.
  void End() {
    algorithm_->End();
    if (status_.ok()) status_ = algorithm_->FinishPending(*client_);
  }

  const absl::Status& status() const { return status_; }  // of the first step that failed
  const DigitsValues& values() const { return network_.values(); }

 private:
  DigitsNetwork network_;
  std::unique_ptr<StoreClient> client_;
  std::unique_ptr<Algorithm> algorithm_;
  absl::Status status_;
};

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (int i = 0; i < kConvergenceWorkers; ++i) names.push_back(TaskName(i));
  return names;
}

// All workers and their ps on one simulated loop.
class Cluster {
 public:
  Cluster(const ConvergenceSetting& setting, const LabelledRows& train) {
    for (int i = 0; i < kConvergenceWorkers; ++i) {
      const AlgorithmPlan plan = PlanOf(setting, i);
      in_step_ = InStep(plan);
      workers_.push_back(std::make_unique<Worker>(store_, plan, train, i));
    }
  }

  absl::Status Start() {
    for (size_t i = 0; i < workers_.size(); ++i) RETURN_IF_ERROR(workers_[i]->Start(/*chief=*/i == 0));
    return absl::OkStatus();
  }
  // Runs the next minibatch of every worker.
  absl::Status Step() {
    return InTurns([](Worker& worker) { worker.Step(); });
  }
  absl::Status End() {
    return InTurns([](Worker& worker) { worker.End(); });
  }
  // Returns the values that the ps hold. No update may be in flight.
  DigitsValues GlobalValues() {
    DigitsValues values;
    Arena& arena = *store_.service(0).MakeView().arena;
    for (size_t i = 0; i < arena.model().slices.size(); ++i) {
      const PlacedSlice& slice = arena.model().slices[i];
      std::vector<float>& into = values[slice.variable];
      into.resize(slice.elements);
      arena.Read(static_cast<int>(i), AsMutableBytes(into.data(), into.size()));
    }
    return values;
  }

 private:
  template <typename What>
  absl::Status InTurns(const What& what) {
    // In-step workers run inside the first one's wait for the others.
    for (size_t i = 1; in_step_ && i < workers_.size(); ++i)
      store_.loop.Post([&what, worker = workers_[i].get()] { what(*worker); });
    for (size_t i = 0; i < (in_step_ ? 1 : workers_.size()); ++i) what(*workers_[i]);
    store_.world.RunReady();
    absl::Status status;
    for (const auto& worker : workers_) status.Update(worker->status());
    return status;
  }

  SimulatedStore store_{1, TaskNames()};
  std::vector<std::unique_ptr<Worker>> workers_;
  bool in_step_ = false;
};

void AddPoint(ConvergenceRun& run, int minibatches, const DigitsValues& values, const ImageData& digits) {
  run.curve.push_back({minibatches, DigitsLoss(values, digits.split.train)});
}

ConvergenceRun TrainThroughPs(const ConvergenceSetting& setting, const ImageData& digits) {
  ConvergenceRun run;
  Cluster cluster(setting, digits.split.train);
  absl::Status status = cluster.Start();
  for (int done = 0; status.ok() && done < setting.minibatches; ++done) {
    if (done % kConvergencePoint == 0) AddPoint(run, done, cluster.GlobalValues(), digits);
    status = cluster.Step();
  }
  if (status.ok()) status = cluster.End();
  EXPECT_EQ(status, absl::OkStatus());
  if (!status.ok()) return run;
  const DigitsValues values = cluster.GlobalValues();
  AddPoint(run, setting.minibatches, values, digits);
  run.accuracy = DigitsAccuracy(values, digits.split.test);
  return run;
}

// Trains one worker in a thread of its own, with a store of its own. All workers end with the same values.
absl::Status TrainByAllReduce(const ConvergenceSetting& setting, const ImageData& digits,
                              std::unique_ptr<Collective> group, ConvergenceRun& run) {
  const int rank = group->rank();
  SimulatedStore store(1, TaskNames());
  Worker worker(store, PlanOf(setting, rank), digits.split.train, rank,
                [&group](absl::Time) { return absl::StatusOr<std::unique_ptr<Collective>>(std::move(group)); });
  RETURN_IF_ERROR(worker.Start(/*chief=*/rank == 0));
  for (int done = 0; done < setting.minibatches; ++done) {
    if (done % kConvergencePoint == 0) AddPoint(run, done, worker.values(), digits);
    worker.Step();
    RETURN_IF_ERROR(worker.status());
  }
  AddPoint(run, setting.minibatches, worker.values(), digits);
  run.accuracy = DigitsAccuracy(worker.values(), digits.split.test);
  worker.End();
  return worker.status();
}

}  // namespace

ConvergenceRun TrainDigits(const ConvergenceSetting& setting, const ImageData& digits) {
  if (setting.name != "all_reduce") return TrainThroughPs(setting, digits);
  std::vector<ConvergenceRun> runs(kConvergenceWorkers);
  std::vector<absl::Status> ends(kConvergenceWorkers);
  AsEveryRank(MakeShmGroup(kConvergenceWorkers), [&](std::unique_ptr<Collective>& group) {
    const int rank = group->rank();
    ends[rank] = TrainByAllReduce(setting, digits, std::move(group), runs[rank]);
  });
  for (const absl::Status& end : ends) EXPECT_EQ(end, absl::OkStatus());
  return runs[0];
}

}  // namespace muster
