#include "bench/support/waiting_worker.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "bench/support/process.h"
#include "muster/algo/algorithms/all_reduce.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/algo/algorithms/synchronous.h"
#include "muster/algo/sources/float_source.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/collective/group/join_group.h"
#include "muster/train/node/node.h"

namespace muster::bench {
namespace {

enum class Kind { kPs, kChief, kRound, kBound, kBarrier, kAllReduce };

struct Wait {
  const char* what;
  Kind kind;
  ApplyChoice apply = ApplyChoice::kServer;
  TransportChoice transport = TransportChoice::kAuto;
};

constexpr Wait kWaits[] = {
    {"a ps that isn't there", Kind::kPs},
    {"the chief", Kind::kChief},
    {"the chief, over TCP", Kind::kChief, ApplyChoice::kServer, TransportChoice::kTcp},
    {"its round", Kind::kRound},
    {"its round, over TCP", Kind::kRound, ApplyChoice::kServer, TransportChoice::kTcp},
    {"its round, direct", Kind::kRound, ApplyChoice::kDirect},
    {"the slowest", Kind::kBound},
    {"a barrier", Kind::kBarrier},
    {"an all-reduce", Kind::kAllReduce},
    {"an all-reduce, on a ring", Kind::kAllReduce, ApplyChoice::kServer, TransportChoice::kTcp},
};

const Wait& Find(const std::string& what) {
  const auto* found = std::find_if(std::begin(kWaits), std::end(kWaits), [&](const Wait& w) { return w.what == what; });
  MUSTER_CHECK(found != std::end(kWaits));
  return *found;
}

// One small variable. After the given number of minibatches it never finishes one.
class Source final : public FloatSource {
 public:
  explicit Source(int minibatches) : FloatSource({{.name = "w", .shape = {1000}}}), left_(minibatches) {}
  absl::StatusOr<double> ComputeGradients() override {
    while (left_ == 0) pause();
    --left_;
    return 0.0;
  }

 private:
  int left_;
};

std::unique_ptr<Algorithm> MakeAlgorithm(Kind kind, Node& node, Source& source, PlacementResult placement) {
  const RuleSpec rule = {.learning_rate = 1e-3};
  if (kind == Kind::kRound)
    return std::make_unique<SynchronousAlgorithm>(
        source, std::move(placement), rule,
        SynchronousOptions{.replicas_to_aggregate = 2, .total_replicas = 2, .elastic = false});
  if (kind == Kind::kBound)
    return std::make_unique<BoundedStalenessAlgorithm>(source, std::move(placement), rule, /*bound=*/1);
  if (kind == Kind::kAllReduce)
    return std::make_unique<AllReduceAlgorithm>(
        source, std::move(placement), rule,
        [&node](absl::Time deadline) -> absl::StatusOr<std::unique_ptr<Collective>> {
          ASSIGN_OR_RETURN(const GroupOptions group, node.MakeGroupOptions());
          return JoinGroup(group, deadline);
        });
  return std::make_unique<AsynchronousAlgorithm>(source, std::move(placement), rule);
}

// Waits as told until it is killed.
absl::Status Run(const Wait& wait) {
  std::vector<std::string> no_arguments;
  ASSIGN_OR_RETURN(const TaskConfig task, TaskConfig::FromArguments(no_arguments, ReadEnvironment()));
  ASSIGN_OR_RETURN(const auto node,
                   Node::Create(task, {.patience = absl::Hours(1), .apply = wait.apply, .transport = wait.transport}));
  // In its first minibatch a rank agrees with the others on what they average: the wait must be the one for a mean.
  const int before_the_wait = wait.kind == Kind::kAllReduce ? 1 : 0;
  Source source(task.is_chief() ? std::numeric_limits<int>::max() : before_the_wait);
  ASSIGN_OR_RETURN(PlacementResult placement,
                   PlaceVariables(source.variables(), node->num_ps(), Placement::kRoundRobin, {}));
  const auto algorithm = MakeAlgorithm(wait.kind, *node, source, std::move(placement));
  node->SetAlgorithm(algorithm.get());
  ASSIGN_OR_RETURN(SessionEnvironment environment, node->MakeSessionEnvironment());
  StoreClient& client = *environment.client;
  Session session(std::move(environment), {.log_step_count_steps = 0}, {});
  RETURN_IF_ERROR(session.Start());
  if (wait.kind == Kind::kBarrier && task.is_chief()) RETURN_IF_ERROR(client.Barrier("both", 2));
  while (!session.ShouldStop()) RETURN_IF_ERROR(session.Run());
  return session.Close();
}

}  // namespace

std::vector<std::string> Waits() {
  std::vector<std::string> all;
  for (const Wait& wait : kWaits) all.emplace_back(wait.what);
  return all;
}

int WaitAs(const std::string& what) {
  const absl::Status status = Run(Find(what));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}

std::optional<double> WaitingShare(const std::string& what, double seconds) {
  const Kind kind = Find(what).kind;
  const std::vector<int> ports = FreePorts(3);
  const auto address = [&](int i) { return absl::StrCat("127.0.0.1:", ports[i]); };
  const auto tf_config = [&](const char* type, int index) {
    nlohmann::json cluster = {{"worker", {address(1), address(2)}}};
    if (kind != Kind::kAllReduce) cluster["ps"] = {address(0)};
    return nlohmann::json{{"cluster", cluster}, {"task", {{"type", type}, {"index", index}}}}.dump();
  };
  const auto worker = [&](int index) {
    return StartSelf({"--wait_for", what}, {{"TF_CONFIG", tf_config("worker", index)}}, "/dev/null");
  };
  std::vector<pid_t> others;
  if (kind != Kind::kPs && kind != Kind::kAllReduce)
    others.push_back(Start({SiblingProgram("muster"), "ps"}, {{"TF_CONFIG", tf_config("ps", 0)}}, "/dev/null"));
  if (kind == Kind::kRound || kind == Kind::kBound || kind == Kind::kAllReduce) others.push_back(worker(1));
  const pid_t waits = worker(kind == Kind::kChief ? 1 : 0);
  // By then starting is over.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double before = CpuSeconds(waits);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double after = CpuSeconds(waits);
  others.push_back(waits);
  for (const pid_t process : others) kill(process, SIGKILL);
  for (const pid_t process : others) WaitFor(process);
  if (before < 0 || after < 0) return std::nullopt;
  return (after - before) / seconds;
}

}  // namespace muster::bench
