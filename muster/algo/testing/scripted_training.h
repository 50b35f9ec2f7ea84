// A whole cluster that trains by an algorithm's name, for tests: real stores, clients and algorithms in one simulated
// world. Every worker is a process of it that makes one minibatch when the test says so. The same script gives the same
// run. Used by the test's thread.
#pragma once

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/choice/make_algorithm.h"
#include "muster/algo/testing/scripted_source.h"
#include "muster/base/status_macros.h"
#include "muster/store/testing/simulated_store.h"

namespace muster {

// Used in the names of tests.
inline void PrintTo(const AlgorithmChoice& choice, std::ostream* out) { *out << choice.name; }

struct ScriptedOptions {
  AlgorithmChoice choice;
  int workers = 3;
  int num_ps = 2;
  bool direct = false;  // workers apply their own updates where the algorithm lets them
  DType dtype = DType::kFloat64;
  int64_t columns = 4;  // width of the model's first variable
  ScriptedProblem problem = {};
  std::vector<Fault> faults = {};  // what the requests of each worker run into
};

// One process of the cluster.
struct ScriptedTrainee {
  ScriptedTrainee(SimulatedStore& store, const ScriptedOptions& options, int number, StoreClientOptions of_client)
      : thread(store.world.NewProcess(of_client.task).NewThread()),
        script(options.faults),
        transport(store.network, thread, &script),
        source(options.problem, number, options.dtype, options.columns),
        client(std::make_unique<StoreClient>(transport, store.addresses(), std::move(of_client))) {
    thread.Start([this] {
      for (;; work = nullptr) {
        thread.loop().RunUntil([this] { return busy(); }, absl::InfiniteFuture());
        work();
      }
    });
  }
  ~ScriptedTrainee() {
    MUSTER_CHECK(!busy());
    client.reset();
    thread.process().Kill();
  }
  ScriptedTrainee(const ScriptedTrainee&) = delete;
  ScriptedTrainee& operator=(const ScriptedTrainee&) = delete;

  bool busy() const { return work != nullptr; }

  SimulatedThread& thread;
  absl::AnyInvocable<void()> work;  // what it does now; null: it is idle
  FaultScript script;
  SimulatedTransport transport;
  ScriptedSource source;
  std::unique_ptr<Algorithm> algorithm;
  std::unique_ptr<StoreClient> client;
  absl::Status status;  // the first error of its steps
  StepResult result;    // of the last step
};

// Returns what the ps hold now for a model like `source`'s.
inline std::vector<double> ReadGlobal(SimulatedStore& store, const ScriptedSource& source) {
  const DType dtype = source.variables()[0].dtype;
  std::vector<std::vector<std::byte>> parts;
  for (const VariableSpec& variable : source.variables()) parts.emplace_back(variable.bytes());
  for (int ps = 0; ps < static_cast<int>(store.addresses().size()); ++ps) {
    Arena& arena = *store.service(ps).MakeView().arena;
    for (size_t i = 0; i < arena.model().slices.size(); ++i) {
      const PlacedSlice& slice = arena.model().slices[i];
      const size_t offset = slice.offset * DTypeSize(dtype);
      arena.Read(static_cast<int>(i), MutableByteSpan(parts[slice.variable]).subspan(offset, slice.bytes));
    }
  }
  return ScriptedSource::Join(dtype, parts);
}

inline std::vector<std::string> ScriptedTasks(int workers) {
  std::vector<std::string> tasks;
  for (int i = 0; i < workers; ++i) tasks.push_back(absl::StrCat("worker:", i));
  return tasks;
}

class ScriptedTraining {
 public:
  explicit ScriptedTraining(ScriptedOptions options)
      : options_(std::move(options)),
        store_(options_.num_ps, ScriptedTasks(options_.workers),
               {.lease = absl::Hours(10), .disconnect_grace = absl::Seconds(1)}, nullptr, options_.direct),
        workers_(options_.workers) {}
  ~ScriptedTraining() {
    stop_ = true;
    Drive(absl::Hours(1));
  }
  ScriptedTraining(const ScriptedTraining&) = delete;
  ScriptedTraining& operator=(const ScriptedTraining&) = delete;

  // Starts a new process of worker `number`. Number 0 is the chief and must come first, with the initial values.
  [[nodiscard]] absl::Status Join(int number) {
    const AlgorithmCluster cluster = {.workers = static_cast<uint32_t>(options_.workers),
                                      .worker = static_cast<uint32_t>(number),
                                      .num_ps = options_.num_ps};
    ASSIGN_OR_RETURN(const AlgorithmPlan plan, PlanAlgorithm(options_.choice, cluster));
    StoreClientOptions of_client = {.task = ScriptedTasks(options_.workers)[number],
                                    .incarnation = ++incarnation_,
                                    .round_sleep = absl::ZeroDuration(),
                                    .stop_requested = [this] { return stop_; },
                                    .apply = options_.direct ? ApplyChoice::kAuto : ApplyChoice::kServer};
    auto worker = std::make_unique<ScriptedTrainee>(store_, options_, number, std::move(of_client));
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
  // Kills worker `number`, which must not be busy; the ps notice it.
  void Leave(int number) {
    workers_[number] = nullptr;
    store_.Pass(absl::Seconds(2));
    Drive(absl::Seconds(2));
  }
  // The chief loads other values, as from a checkpoint of that step, and all workers pull them. None may be busy.
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

  // Begins a minibatch of worker `number`, which runs until it has to wait.
  void Start(int number) {
    Begin(number, [](ScriptedTrainee& worker) {
      const absl::StatusOr<StepResult> result = worker.algorithm->Step(*worker.client);
      worker.status.Update(result.status());
      if (result.ok()) worker.result = *result;
    });
  }
  // Begins the end of the session of worker `number`, which runs until it has to wait.
  void Finish(int number) {
    Begin(number, [](ScriptedTrainee& worker) {
      worker.algorithm->End();
      worker.status.Update(worker.algorithm->FinishPending(*worker.client));
    });
  }
  // Lets all workers run until none is busy, or until `patience` is over: a worker still busy then waits for others.
  bool Drive(absl::Duration patience = absl::Milliseconds(300)) {
    const auto idle = [](const auto& worker) { return worker == nullptr || !worker->busy(); };
    return store_.loop.RunUntil([&] { return std::all_of(workers_.begin(), workers_.end(), idle); },
                                store_.loop.Now() + patience);
  }
  // Runs a whole minibatch.
  bool Step(int number) {
    Start(number);
    return Drive();
  }

  bool busy(int number) const { return workers_[number]->busy(); }
  // Returns the first error of the worker's steps.
  const absl::Status& status(int number) const { return workers_[number]->status; }
  const StepResult& result(int number) const { return workers_[number]->result; }
  ScriptedSource& source(int number) { return workers_[number]->source; }
  StoreClient& client(int number) { return *workers_[number]->client; }
  uint64_t faults_met(int number) const { return workers_[number]->script.met(); }

  // Returns what the ps hold now. The chief must be present.
  std::vector<double> Global() { return ReadGlobal(store_, workers_[0]->source); }
  int64_t global_step() { return store_.service(0).MakeView().arena->header().counters.global_step; }

 private:
  PlacementResult Place(const ScriptedSource& source) const {
    return *PlaceVariables(source.variables(), options_.num_ps, Placement::kRoundRobin, {});
  }
  void Begin(int number, void (*what)(ScriptedTrainee& worker)) {
    ScriptedTrainee& worker = *workers_[number];
    MUSTER_CHECK(!worker.busy());
    worker.work = [&worker, what] { what(worker); };
    worker.thread.loop().Post([] {});
    store_.world.RunReady();
  }
  // Does what a session does once there is a model.
  static absl::Status BeginAt(ScriptedTrainee& worker) {
    RETURN_IF_ERROR(worker.client->AwaitReady(absl::InfiniteFuture()).status());
    worker.algorithm->Begin(*worker.client);
    return worker.client->Pull(PullWhat::kEverything);
  }

  const ScriptedOptions options_;
  SimulatedStore store_;
  bool stop_ = false;
  uint64_t incarnation_ = 1000;
  std::vector<std::unique_ptr<ScriptedTrainee>> workers_;  // null: not present
};

}  // namespace muster
