#include "muster/torch_bridge/facade/training.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/base/log.h"
#include "muster/cluster/identity/compute_threads.h"
#include "muster/cluster/identity/environment.h"
#include "muster/torch_bridge/module/load_checkpoint.h"
#include "muster/torch_bridge/module/module_source.h"
#include "muster/torch_bridge/module/random_state.h"
#include "muster/torch_bridge/module/session_devices.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/train/tensorflow/sync_replicas.h"

namespace muster {
namespace {

NodeOptions WithToken(NodeOptions options) {
  const Environment environment = ReadEnvironment();
  if (options.token.secret.empty()) options.token.secret = environment.job_token.value_or("");
  if (options.token.cluster_file.empty()) options.token.cluster_file = environment.cluster_file.value_or("");
  options.token.tasks.allow_proxy |= environment.allow_proxy;
  if (options.arena_fd.empty()) options.arena_fd = environment.arena_fd.value_or("");
  if (options.heard_file.empty()) options.heard_file = environment.heard_file.value_or("");
  if (options.life == 0) options.life = TaskLifeOf(environment);
  return options;
}

ComputeThreads ThreadsOf(const TaskConfig& task) {
  const Environment environment = ReadEnvironment();
  return ComputeThreadsOf(task, environment, ValueOrThrow(ProcessorsOfJob(environment)));
}

void SetThreads(const TaskConfig& task, int asked) {
  if (task.is_ps()) return;
  const ComputeThreads here = ThreadsOf(task);
  const int threads = asked > 0 ? asked : here.threads;
  at::set_num_threads(threads);
  LogInfo("computes with ", threads, threads == 1 ? " thread (" : " threads (",
          asked > 0 ? "the program says so" : here.why, ")");
}

SessionConfig ConfigOf(const SessionOptions& options) {
  return options.creator ? options.creator->options().config : options.config;
}

TaskConfig MakeTask(const ClusterSpec& cluster, const std::string& job, std::optional<int> index) {
  // Uses the same resolver as everything else, so that the same rules hold.
  return ValueOrThrow(
      ResolveTaskConfig({.tf_config = absl::StrCat("{\"cluster\": ", cluster.ToJson(), ", \"task\": {\"type\": \"", job,
                                                   "\"", index ? absl::StrCat(", \"index\": ", *index) : "", "}}"),
                         .flags = {}}));
}

std::unique_ptr<TensorSource> SourceOfModule(Server& server, std::shared_ptr<torch::nn::Module> module,
                                             const ReplicaOptions& options) {
  ModuleSourceOptions source;
  // A process without a cluster holds everything itself, whatever devices were named for a cluster.
  if (server.task().distributed()) source.devices = options.devices;
  return ValueOrThrow(ModuleSource::Create(std::move(module), std::move(source)));
}

}  // namespace

Server::Server(const TaskConfig& task, NodeOptions options) {
  HandleUncaughtErrors();
  SetUpLog(ReadEnvironment().run_id ? "" : task.task().ToString());
  if (!task.cluster().empty()) LogInfo("server of ", task.Summary());
  const int threads = options.threads;
  node_ = ValueOrThrow(Node::Create(task, WithToken(std::move(options))));
  SetThreads(task, threads);
}

Server::Server(const ClusterSpec& cluster, const std::string& job, std::optional<int> index, NodeOptions options)
    : Server(MakeTask(cluster, job, index), std::move(options)) {}

std::unique_ptr<Server> Server::CreateLocal() { return std::make_unique<Server>(TaskConfig()); }

std::shared_ptr<WorkSource> Server::OpenWorkQueue(const std::string& name, const WorkQueueOptions& options) {
  return ValueOrThrow(node_->OpenWorkQueue(name, options));
}

SharedQueue Server::OpenQueue(const std::string& name, const QueueOptions& options) {
  return SharedQueue(ValueOrThrow(node_->OpenQueue(name, options)));
}

int Server::Join() {
  const absl::Status status = node_->Join();
  if (!status.ok()) LogError(status.message());
  return static_cast<int>(ExitCodeOf(status));
}

Replica::Replica(Server& server, std::shared_ptr<torch::nn::Module> module, const ReplicaOptions& options)
    : Replica(server, SourceOfModule(server, std::move(module), options), options) {}

Replica::Replica(Server& server, std::unique_ptr<TensorSource> source, const ReplicaOptions& options)
    : server_(server), source_(std::move(source)) {
  // An evaluator needs no placement.
  if (const int num_ps = server_.node().num_ps(); num_ps > 0)
    placement_ = ValueOrThrow(PlaceVariables(source_->variables(), num_ps, options.placement, options.partitioning));
}

void Replica::Load(const CheckpointReader& checkpoint) { ThrowIfError(LoadCheckpoint(*source_, checkpoint)); }

Trainer::Trainer(Replica& replica, std::unique_ptr<Algorithm> algorithm)
    : replica_(replica), algorithm_(std::move(algorithm)) {
  replica_.server().node().SetAlgorithm(algorithm_.get());
}

Trainer Asynchronous(Replica& replica, const OptimizerSpec& optimizer) {
  return Trainer(replica, std::make_unique<AsynchronousAlgorithm>(replica.source(), replica.placement(), optimizer));
}

Trainer Synchronous(Replica& replica, const OptimizerSpec& optimizer, const SynchronousOptions& options) {
  const TaskConfig& task = replica.server().task();
  WarnOfMissingReplicas(options.total_replicas, task.distributed() ? task.worker_tasks().size() : 1);
  return Trainer(replica,
                 std::make_unique<SynchronousAlgorithm>(replica.source(), replica.placement(), optimizer, options));
}

Trainer BoundedStaleness(Replica& replica, const OptimizerSpec& optimizer, uint32_t bound) {
  return Trainer(replica,
                 std::make_unique<BoundedStalenessAlgorithm>(replica.source(), replica.placement(), optimizer, bound));
}

AllReduceAlgorithm::Join AllReduceJoinOf(Server& server) {
  return [&node = server.node()](absl::Time deadline) -> absl::StatusOr<std::unique_ptr<Collective>> {
    auto group = node.MakeGroupOptions();
    if (!group.ok()) return group.status();
    const auto processors = ProcessorsOfJob(ReadEnvironment());
    if (!processors.ok()) return processors.status();
    group->processors = processors->count;
    auto joined = JoinGroup(*group, deadline);
    if (!joined.ok()) return node.task().ExplainBusyPort(joined.status());
    return joined;
  };
}

AllReduceOptions AllReduceOptionsOf(Server& server, AllReduceOptions options) {
  if (options.workers_on_this_host == 0) options.workers_on_this_host = ThreadsOf(server.task()).computing;
  if (options.processors == 0) options.processors = ValueOrThrow(ProcessorsOfJob(ReadEnvironment())).count;
  return options;
}

Trainer AllReduce(Replica& replica, const OptimizerSpec& optimizer, const AllReduceOptions& options) {
  Server& server = replica.server();
  return Trainer(replica,
                 std::make_unique<AllReduceAlgorithm>(replica.source(), replica.placement(), optimizer,
                                                      AllReduceJoinOf(server), AllReduceOptionsOf(server, options)));
}

Trainer Pipelined(Replica& replica, const OptimizerSpec& optimizer) {
  return Trainer(replica, std::make_unique<PipelinedAlgorithm>(replica.source(), replica.placement(), optimizer));
}

SessionEnvironment MakeTorchEnvironment(Server& server, const SessionConfig& config) {
  SessionEnvironment environment = ValueOrThrow(server.node().MakeSessionEnvironment());
  ThrowIfError(PrepareDevices(server.node(), config, environment));
  environment.saveables.push_back({"torch_random", [] { return TorchRandomState(); },
                                   [](const std::string& state) { return SetTorchRandomState(state); }});
  return environment;
}

LossScope::LossScope(Trainer& trainer, const Algorithm& trains, std::function<torch::Tensor()> loss)
    : source_(trainer.replica().source()) {
  if (&trainer.algorithm() != &trains)
    ThrowIfError(absl::FailedPreconditionError(
        "this session trains with another Trainer: the one that was made last before it; a server has one trainer "
        "per session"));
  // The running function must not be replaced.
  if (source_.has_loss())
    ThrowIfError(absl::FailedPreconditionError(
        "Run within a step: neither a loss function nor a hook may run a step of its own session"));
  source_.SetLoss(std::move(loss));
}

LossScope::~LossScope() { source_.SetLoss({}); }

absl::Status CallFetch(const std::function<void()>& fetch) {
  return CatchTorch("looking at the global values", [&fetch] {
    fetch();
    return absl::OkStatus();
  });
}

StepResult RawSession::Run(Trainer& trainer, std::function<torch::Tensor()> loss) {
  const LossScope scope(trainer, session_.algorithm(), std::move(loss));
  return ValueOrThrow(session_.RunRaw());
}

void RawSession::Fetch(const std::function<void()>& fetch) {
  ThrowIfError(session_.FetchRaw([&fetch] { return CallFetch(fetch); }));
}

MonitoredSession::MonitoredSession(Server& server, SessionOptions options,
                                   std::vector<std::shared_ptr<SessionHook>> hooks)
    : exceptions_(std::uncaught_exceptions()) {
  SessionEnvironment environment = MakeTorchEnvironment(server, ConfigOf(options));
  session_ = std::make_unique<Session>(std::move(environment), std::move(options), std::move(hooks));
  ThrowIfError(session_->Start());
}

MonitoredSession::MonitoredSession(Server& server, std::shared_ptr<SessionCreator> creator,
                                   std::vector<std::shared_ptr<SessionHook>> hooks, double stop_grace_period_secs)
    : MonitoredSession(
          server,
          SessionOptions{
              .stop_grace_period_secs = stop_grace_period_secs, .creator = std::move(creator), .default_hooks = false},
          std::move(hooks)) {}

MonitoredSession::~MonitoredSession() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_) Close();
}

void MonitoredSession::Run(Trainer& trainer, std::function<torch::Tensor()> loss) {
  const LossScope scope(trainer, session_->algorithm(), std::move(loss));
  ThrowIfError(session_->Run());
}

void MonitoredSession::Fetch(const std::function<void()>& fetch) {
  ThrowIfError(session_->Fetch([&fetch] { return CallFetch(fetch); }));
}

void MonitoredSession::StepContext::RunWithHooks(Trainer& trainer, std::function<torch::Tensor()> loss) {
  const LossScope scope(trainer, session_.algorithm(), std::move(loss));
  ThrowIfError(context_.RunWithHooks());
}

void MonitoredSession::StepContext::RequestStop() { throw Error(context_.RequestStop()); }

void MonitoredSession::RunStepFn(const std::function<void(StepContext&)>& step_fn) {
  ThrowIfError(session_->RunStepFn([&](muster::StepContext& context) {
    StepContext mine(*session_, context);
    try {
      step_fn(mine);
    } catch (const Error& error) {
      return error.status();
    }
    return absl::OkStatus();
  }));
}

void MonitoredSession::Restore(const std::string& path) { ThrowIfError(session_->Restore(path)); }

void MonitoredSession::Close() { ThrowIfError(session_->Close()); }

MonitoredTrainingSession::MonitoredTrainingSession(Server& server, SessionOptions options,
                                                   std::vector<std::shared_ptr<SessionHook>> hooks)
    : MonitoredSession(server, std::move(options), std::move(hooks)) {}

}  // namespace muster
