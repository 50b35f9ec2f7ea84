// A whole cluster that trains by an algorithm's name, for tests: real stores, clients and algorithms on one simulated
// loop, every worker a process of its own (scripted_process.h) that makes one minibatch when the test says so. The same
// script gives the same run. Used by the test's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/make_algorithm.h"
#include "muster/algo/scripted_process.h"
#include "muster/algo/scripted_source.h"
#include "muster/base/status_macros.h"
#include "muster/store/simulated_store.h"

namespace muster {

struct ScriptedOptions {
  AlgorithmChoice choice;
  int workers = 3;
  int num_ps = 2;
  bool direct = false;  // workers apply their updates themselves where the algorithm lets them
  DType dtype = DType::kFloat64;
  int64_t columns = 4;  // of the model's first variable
  ScriptedProblem problem = {};
  std::vector<Fault> faults = {};  // that the requests of each worker meet
};

class ScriptedTraining {
 public:
  explicit ScriptedTraining(ScriptedOptions options)
      : options_(std::move(options)),
        store_(options_.num_ps, Tasks(options_.workers),
               {.lease = absl::Hours(10), .disconnect_grace = absl::Seconds(1)}, nullptr, options_.direct),
        workers_(options_.workers) {}
  ~ScriptedTraining() {
    stop_ = true;
    Drive(absl::Hours(1));
  }
  ScriptedTraining(const ScriptedTraining&) = delete;
  ScriptedTraining& operator=(const ScriptedTraining&) = delete;

  // A new process of worker `number` joins; number 0 is the chief and comes first, with the initial values.
  [[nodiscard]] absl::Status Join(int number) {
    const AlgorithmCluster cluster = {.workers = static_cast<uint32_t>(options_.workers),
                                      .worker = static_cast<uint32_t>(number),
                                      .num_ps = options_.num_ps};
    ASSIGN_OR_RETURN(const AlgorithmPlan plan, PlanAlgorithm(options_.choice, cluster));
    auto worker = std::make_unique<Worker>(*this, number);
    worker->algorithm = MakeAlgorithm(plan, worker->source, Place(worker->source), {});
    RETURN_IF_ERROR(worker->client->Join(number == 0));
    worker->client->Bind(worker->algorithm->binding());
    if (number == 0) RETURN_IF_ERROR(worker->client->Initialize(0, 0, nullptr));
    RETURN_IF_ERROR(BeginAt(*worker));
    workers_[number] = std::move(worker);
    return absl::OkStatus();
  }
  [[nodiscard]] absl::Status JoinAll() {
    for (int number = 0; number < options_.workers; ++number) RETURN_IF_ERROR(Join(number));
    return absl::OkStatus();
  }
  // Worker `number`, which isn't busy, dies; the ps learn of it.
  void Leave(int number) {
    workers_[number] = nullptr;
    store_.Pass(absl::Seconds(2));
    Drive();
  }
  // The chief brings other values, as from a checkpoint of that step, and everybody pulls them. Nobody is busy.
  [[nodiscard]] absl::Status Load(const std::vector<double>& values, int64_t step) {
    workers_[0]->source.SetValues(values);
    RETURN_IF_ERROR(workers_[0]->client->Initialize(step, 0, nullptr));
    for (auto& worker : workers_) {
      if (worker == nullptr) continue;
      if (worker != workers_[0]) RETURN_IF_ERROR(worker->client->Join(/*chief=*/false));
      RETURN_IF_ERROR(BeginAt(*worker));
    }
    return absl::OkStatus();
  }

  // Worker `number` begins a minibatch, up to where it has to wait.
  void Start(int number) {
    Worker& worker = *workers_[number];
    worker.process.Start([&worker] {
      const absl::StatusOr<StepResult> result = worker.algorithm->Step(*worker.client);
      worker.status.Update(result.status());
      if (result.ok()) worker.result = *result;
    });
  }
  // … the end of its session.
  void Finish(int number) {
    Worker& worker = *workers_[number];
    worker.process.Start([&worker] {
      worker.algorithm->End();
      worker.status.Update(worker.algorithm->Settle(*worker.client));
    });
  }
  // Lets all of them go on until nobody is busy, or for so long: who is busy then waits for others.
  bool Drive(absl::Duration patience = absl::Milliseconds(300)) {
    std::vector<ScriptedProcess*> processes;
    for (auto& worker : workers_)
      if (worker != nullptr) processes.push_back(&worker->process);
    return ScriptedProcess::Drive(store_.loop, processes, patience);
  }
  // A whole minibatch.
  bool Step(int number) {
    Start(number);
    return Drive();
  }

  bool busy(int number) const { return workers_[number]->process.busy(); }
  // The first error of its steps.
  const absl::Status& status(int number) const { return workers_[number]->status; }
  const StepResult& result(int number) const { return workers_[number]->result; }
  ScriptedSource& source(int number) { return workers_[number]->source; }
  StoreClient& client(int number) { return *workers_[number]->client; }
  uint64_t faults_met(int number) const { return workers_[number]->script.met(); }

  // What the ps hold now.
  std::vector<double> Global() {
    ScriptedSource shape(options_.problem, 0, options_.dtype, options_.columns);
    std::vector<std::vector<std::byte>> parts;
    for (const VariableSpec& variable : shape.variables()) parts.emplace_back(variable.bytes());
    for (int ps = 0; ps < options_.num_ps; ++ps) {
      Arena& arena = *store_.service(ps).MakeView().arena;
      for (size_t i = 0; i < arena.model().slices.size(); ++i) {
        const PlacedSlice& slice = arena.model().slices[i];
        const size_t offset = slice.offset * DTypeSize(options_.dtype);
        arena.Read(static_cast<int>(i), MutableByteSpan(parts[slice.variable]).subspan(offset, slice.bytes));
      }
    }
    return ScriptedSource::Join(options_.dtype, parts);
  }
  int64_t global_step() { return store_.service(0).MakeView().arena->header().counters.global_step; }

 private:
  struct Worker {
    Worker(ScriptedTraining& training, int number)
        : process(training.store_.loop),
          script(training.options_.faults),
          transport(training.store_.network, process),
          faulty(transport, script),
          source(training.options_.problem, number, training.options_.dtype, training.options_.columns),
          client(std::make_unique<StoreClient>(
              faulty, training.store_.addresses(),
              StoreClientOptions{.task = Tasks(training.options_.workers)[number],
                                 .incarnation = ++training.incarnation_,
                                 .round_sleep = absl::ZeroDuration(),
                                 .stop_requested = [&training] { return training.stop_; },
                                 .apply = training.options_.direct ? ApplyChoice::kAuto : ApplyChoice::kServer})) {}
    ScriptedProcess process;
    FaultScript script;
    LoopbackTransport transport;
    FaultTransport faulty;
    ScriptedSource source;
    std::unique_ptr<Algorithm> algorithm;
    std::unique_ptr<StoreClient> client;
    absl::Status status;
    StepResult result;
  };

  static std::vector<std::string> Tasks(int workers) {
    std::vector<std::string> tasks;
    for (int i = 0; i < workers; ++i) tasks.push_back(absl::StrCat("worker:", i));
    return tasks;
  }
  PlacementResult Place(const ScriptedSource& source) const {
    return *PlaceVariables(source.variables(), options_.num_ps, Placement::kRoundRobin, {});
  }
  // As a session does once there is a model.
  static absl::Status BeginAt(Worker& worker) {
    RETURN_IF_ERROR(worker.client->AwaitReady(absl::InfiniteFuture()).status());
    worker.algorithm->Begin(*worker.client);
    return worker.client->Pull(PullWhat::kEverything);
  }

  const ScriptedOptions options_;
  SimulatedStore store_;
  bool stop_ = false;
  uint64_t incarnation_ = 1000;
  std::vector<std::unique_ptr<Worker>> workers_;  // null: it isn't there
};

}  // namespace muster
