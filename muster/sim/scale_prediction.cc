#include "muster/sim/scale_prediction.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/check.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/status_macros.h"
#include "muster/store/client/store_client.h"
#include "muster/store/service/passing_handler.h"
#include "muster/transport/simulated/simulated_network.h"
#include "muster/transport/simulated/simulated_transport.h"

namespace muster {
namespace {

constexpr absl::Duration kGettingGoing = absl::Seconds(1);
// Sixty-four variables of sixteen numbers, so that up to sixty-four ps get equal shares.
constexpr int kVariables = 64;
constexpr int64_t kElements = 16;
constexpr double kModelBytes = kVariables * kElements * sizeof(float);

std::vector<VariableSpec> Variables() {
  std::vector<VariableSpec> variables;
  for (int i = 0; i < kVariables; ++i) variables.push_back({.name = absl::StrCat("v", i), .shape = {kElements}});
  return variables;
}

// Spends a ps's time on each request, then passes it on.
class CostlyHandler final : public PassingHandler {
 public:
  CostlyHandler(StoreService& service, SimulatedThread& thread, const StepCosts& costs)
      : PassingHandler(service), thread_(thread), costs_(costs) {}
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    if (request.method == static_cast<uint16_t>(StoreMethod::kPushPull))
      thread_.Compute(costs_.ps_request + costs_.ps_model * (static_cast<double>(request.bulk_bytes) / kModelBytes));
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }

 private:
  SimulatedThread& thread_;
  const StepCosts& costs_;
};

class ScaleSimulation {
 public:
  ScaleSimulation(int workers, int num_ps, const StepCosts& costs, absl::Duration simulated)
      : workers_(workers), num_ps_(num_ps), costs_(costs), simulated_(simulated) {
    for (int ps = 0; ps < num_ps; ++ps) addresses_.push_back(absl::StrCat("ps", ps, ":2222"));
  }
  ~ScaleSimulation() { world_.End(); }

  absl::StatusOr<double> Run() {
    for (int ps = 0; ps < num_ps_; ++ps) {
      SimulatedThread& thread = world_.NewProcess(absl::StrCat("ps:", ps)).NewThread();
      thread.Start([this, ps, &thread] { RunPs(ps, thread); });
    }
    for (int worker = 0; worker < workers_; ++worker) {
      SimulatedThread& thread = world_.NewProcess(TaskOf(worker)).NewThread();
      thread.Start([this, worker, &thread] {
        const absl::Status status = RunWorker(worker, thread);
        if (!status.ok() && failure_.ok()) failure_ = status;
        ++ended_;
      });
    }
    const auto over = [this] { return !failure_.ok() || ended_ == workers_; };
    const auto ending = world_.Run(over, {.time = absl::Hours(2), .events = kMostEvents});
    RETURN_IF_ERROR(failure_);
    if (ending != SimulatedWorld::Ending::kOver)
      return absl::ResourceExhaustedError(
          absl::StrCat(workers_, " workers and ", num_ps_, " ps take more than ", kMostEvents, " simulated events"));
    return static_cast<double>(steps_) / absl::ToDoubleSeconds(simulated_);
  }

 private:
  static constexpr uint64_t kMostEvents = 100'000'000;

  std::string TaskOf(int worker) const { return worker == 0 ? "chief:0" : absl::StrCat("worker:", worker - 1); }

  void RunPs(int ps, SimulatedThread& thread) {
    StoreOptions options{.task = thread.name(), .lead = ps == 0, .files = &files_};
    for (int worker = 0; worker < workers_; ++worker) options.workers.push_back(TaskOf(worker));
    options.lease.lease = absl::Hours(1);  // no process dies here
    StoreService service(thread.loop(), std::move(options));
    CostlyHandler handler(service, thread, costs_);
    SimulatedTransport transport(network_, thread);
    const auto listener = transport.Listen(addresses_[ps], handler);
    MUSTER_CHECK(listener.ok());
    thread.loop().RunUntil([&] { return service.finished(); }, absl::InfiniteFuture());
  }

  absl::Status RunWorker(int worker, SimulatedThread& thread) {
    SimulatedTransport transport(network_, thread);
    StoreClient client(transport, addresses_, {.task = thread.name(), .where = "here"});
    QuadraticSource source(Variables());
    source.on_step = [&](double loss) {
      thread.Compute(costs_.compute + costs_.client + costs_.client_ps * (num_ps_ - 1));
      return loss;
    };
    ASSIGN_OR_RETURN(PlacementResult placement,
                     PlaceVariables(source.variables(), num_ps_, Placement::kRoundRobin, {}));
    AsynchronousAlgorithm algorithm(source, std::move(placement), RuleSpec{.learning_rate = 1e-6});
    RETURN_IF_ERROR(client.Join(worker == 0));
    client.Bind(algorithm.binding());
    if (worker == 0) RETURN_IF_ERROR(client.Initialize(0, 0, nullptr));
    RETURN_IF_ERROR(client.AwaitReady(thread.loop().Now() + absl::Minutes(10)).status());
    RETURN_IF_ERROR(client.Pull(PullWhat::kTrainable));
    // Workers that start together needn't stay in step, so each begins at its own moment within a minibatch.
    const double share = static_cast<double>(HashNumbers(world_.seed(), worker) >> 40) / static_cast<double>(1 << 24);
    thread.Compute(costs_.compute * share);
    const absl::Time begin = started_ + kGettingGoing;
    for (absl::Time now; (now = thread.loop().Now()) < begin + simulated_;) {
      RETURN_IF_ERROR(algorithm.Step(client).status());
      if (now >= begin) ++steps_;
    }
    return client.Done();
  }

  const int workers_;
  const int num_ps_;
  const StepCosts costs_;
  const absl::Duration simulated_;
  std::vector<std::string> addresses_;
  SimulatedWorld world_{1};
  SimulatedNetwork network_{world_.loop(), {.shortest = costs_.one_way, .longest = costs_.one_way}};
  MemoryFileSystem files_;
  const absl::Time started_ = world_.Now();
  absl::Status failure_;
  int ended_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

absl::StatusOr<double> PredictStepsPerSecond(int workers, int num_ps, const StepCosts& costs,
                                             absl::Duration simulated) {
  return ScaleSimulation(workers, num_ps, costs, simulated).Run();
}

}  // namespace muster
