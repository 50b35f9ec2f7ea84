// The training API for torch programs: Server, Replica, trainers, MonitoredSession, MonitoredTrainingSession; the other
// session objects are in sessions.h. Thin: every class here wraps a torch-free one and turns its absl::Status into a
// muster::Error. Used by one thread.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/algorithms/all_reduce.h"
#include "muster/algo/algorithms/synchronous.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/cluster/placement/placement.h"
#include "muster/optim/update_rule.h"
#include "muster/torch_bridge/facade/shared_queue.h"
#include "muster/torch_bridge/module/tensor_source.h"
#include "muster/train/node/node.h"
#include "muster/train/session/session.h"
#include "muster/train/threads/error.h"

namespace muster {

// This process in its cluster (TensorFlow's tf.train.Server). Sets up the log and the handling of uncaught Errors.
// Reads the job's token from the environment (MUSTER_JOB_TOKEN). Throws Error: its port is in use.
class Server {
 public:
  explicit Server(const TaskConfig& task, NodeOptions options = {});
  // `index` may be left out if the job has one task.
  Server(const ClusterSpec& cluster, const std::string& job, std::optional<int> index = std::nullopt,
         NodeOptions options = {});
  // A process without a cluster.
  static std::unique_ptr<Server> CreateLocal();

  // On a ps: serves until training has ended, then returns the process's exit code.
  int Join();
  // Opens the queue of this name, which all tasks of the job share; the first task that opens it creates it
  // (docs/queues.md). It must not outlive the server. Throws Error: another capacity or other components than the
  // first's.
  SharedQueue OpenQueue(const std::string& name, const QueueOptions& options);
  // This worker's end of the job's work queue, for Dataset::ShareBy; every worker must open it with the same arguments.
  // Each example goes to one of them per epoch, even if workers come and go (docs/work_queue.md). Checkpoints keep it
  // automatically. It must not outlive the server. Throws Error: a cluster without ps; this process has one; rows or
  // units of 0.
  std::shared_ptr<WorkSource> OpenWorkQueue(const std::string& name, const WorkQueueOptions& options);
  // Text for people: this task, and every task of its cluster with its address (TensorFlow's server_def).
  std::string ServerDef() const { return task().Definition(); }
  std::string Target() const { return node_->Target(); }
  std::vector<std::string> Devices() const { return node_->Devices(); }
  const TaskConfig& task() const { return node_->task(); }
  Node& node() { return *node_; }

 private:
  std::unique_ptr<Node> node_;
};

struct ReplicaOptions {
  Placement placement = Placement::kRoundRobin;
  Partitioning partitioning;
  // Device strings of variables by name ("/job:ps/task:1"): the strategy doesn't place these. See module_devices.h.
  absl::flat_hash_map<std::string, std::string> devices;
};

// This process's copy of the model, its parameters moved into flat memory (tensor_source.h). Throws Error.
class Replica {
 public:
  Replica(Server& server, std::shared_ptr<torch::nn::Module> module, const ReplicaOptions& options = {});
  template <typename Module>
  Replica(Server& server, const torch::nn::ModuleHolder<Module>& module, const ReplicaOptions& options = {})
      : Replica(server, std::static_pointer_cast<torch::nn::Module>(module.ptr()), options) {}
  // Takes a source of named tensors, whose variables have their devices already: `options.devices` isn't used.
  Replica(Server& server, std::unique_ptr<TensorSource> source, const ReplicaOptions& options = {});

  Server& server() { return server_; }
  TensorSource& source() { return *source_; }
  const PlacementResult& placement() const { return placement_; }
  // Where the module computes, once there is a session: move the minibatches there.
  torch::Device device() const { return source_->device(); }

  // Loads a checkpoint's variables and buffers, without a cluster, and its tables of rows into memory. Throws Error.
  void Load(const CheckpointReader& checkpoint);

 private:
  Server& server_;
  std::unique_ptr<TensorSource> source_;
  PlacementResult placement_;
};

// An algorithm at work on a replica. Create it before the session, which uses the last trainer made for its server.
class Trainer {
 public:
  Trainer(Replica& replica, std::unique_ptr<Algorithm> algorithm);
  Replica& replica() { return replica_; }
  const Algorithm& algorithm() const { return *algorithm_; }

 private:
  Replica& replica_;
  std::unique_ptr<Algorithm> algorithm_;
};

// Every minibatch makes an update, and no worker waits for another (algo/algorithms/asynchronous.h). The ps apply the
// optimizer: `Adam({.learning_rate = 0.001})`, or separate rules for groups of variables.
Trainer Asynchronous(Replica& replica, const OptimizerSpec& optimizer);

// The mean of the gradients of N of M workers makes an update, and all wait for it (algo/algorithms/synchronous.h).
Trainer Synchronous(Replica& replica, const OptimizerSpec& optimizer, const SynchronousOptions& options);

// Asynchronous, but no worker gets more than `bound` minibatches ahead of the slowest
// (algo/algorithms/bounded_staleness.h).
Trainer BoundedStaleness(Replica& replica, const OptimizerSpec& optimizer, uint32_t bound);

// The mean of all workers' gradients makes an update, as with Synchronous, but the cluster has no ps: each worker
// applies it to its own copy (algo/algorithms/all_reduce.h).
Trainer AllReduce(Replica& replica, const OptimizerSpec& optimizer, const AllReduceOptions& options = {});

// What AllReduce needs from a server: a function that joins its group, and `options` completed by the cluster's facts.
AllReduceAlgorithm::Join AllReduceJoinOf(Server& server);
AllReduceOptions AllReduceOptionsOf(Server& server, AllReduceOptions options);

// Asynchronous, one step stale: gradients are sent and values fetched while the next minibatch is computed
// (algo/algorithms/pipelined.h). Updates go through the ps, whatever `apply` says except kDirect.
Trainer Pipelined(Replica& replica, const OptimizerSpec& optimizer);

// Shared by the session classes. Sets the source's loss function for one step: it refers to the caller's variables.
class LossScope {
 public:
  // `trains`: the session's algorithm. Throws Error (FailedPrecondition): the trainer has another one; a step of its
  // replica is under way.
  LossScope(Trainer& trainer, const Algorithm& trains, std::function<torch::Tensor()> loss);
  ~LossScope();
  LossScope(const LossScope&) = delete;
  LossScope& operator=(const LossScope&) = delete;

 private:
  TensorSource& source_;
};

// Also shared by them: calls `fetch`; its exceptions become a Status as those of a loss do.
[[nodiscard]] absl::Status CallFetch(const std::function<void()>& fetch);

// The session environment of this process, on the devices that `config` and the task ask for. Every checkpoint keeps
// torch's random generator: the chief's continues where it was. Throws Error.
SessionEnvironment MakeTorchEnvironment(Server& server, const SessionConfig& config);

// Runs a session's steps without hooks and without recovery; the session must outlive it.
class RawSession {
 public:
  explicit RawSession(Session& session) : session_(session) {}
  // Runs one step: `loss` runs the module on this worker's next minibatch and returns a scalar. Throws Error.
  StepResult Run(Trainer& trainer, std::function<torch::Tensor()> loss);
  // As MonitoredSession::Fetch, unseen by hooks. Throws Error.
  void Fetch(const std::function<void()>& fetch);

 private:
  Session& session_;
};

// A session with no hooks but those it is given (TensorFlow's MonitoredSession); the base of the others.
class MonitoredSession {
 public:
  // `creator` makes the model ready: ChiefSessionCreator, WorkerSessionCreator or one of the program's own. Blocks
  // until it is. Throws Error.
  MonitoredSession(Server& server, std::shared_ptr<SessionCreator> creator,
                   std::vector<std::shared_ptr<SessionHook>> hooks = {}, double stop_grace_period_secs = 120);
  // Closes, unless an exception is being thrown. May throw Error (the last checkpoint can fail).
  virtual ~MonitoredSession() noexcept(false);
  MonitoredSession(const MonitoredSession&) = delete;
  MonitoredSession& operator=(const MonitoredSession&) = delete;

  bool ShouldStop() const { return session_->ShouldStop(); }
  void RequestStop() { session_->RequestStop(); }

  // Runs one step: `loss` runs the module on this worker's next minibatch and returns a scalar. Throws Error: after a
  // stop, after Close, within a step, with a trainer that isn't the session's, and errors of the step. An Error of
  // OutOfRange in `loss` is a clean end (ShouldStop).
  void Run(Trainer& trainer, std::function<torch::Tensor()> loss);

  // A run that trains nothing: calls `fetch` once (after a recovery again) while the module shows the newest global
  // values, to look at them or to evaluate them; then the module has this worker's own values again. global_step isn't
  // moved by it, but follows the other workers' (docs/sessions.md). Throws Error: as Run. An Error of OutOfRange in
  // `fetch` is a clean end.
  void Fetch(const std::function<void()>& fetch);

  // The argument of a step function (TensorFlow's StepContext); valid for one call.
  class StepContext {
   public:
    StepContext(Session& session, muster::StepContext& context) : session_(session), context_(context) {}
    RawSession session() { return RawSession(session_); }  // no hook sees its steps
    void RunWithHooks(Trainer& trainer, std::function<torch::Tensor()> loss);
    // Stops the session. Doesn't return: it leaves `step_fn`, even from within a loss of it, and RunStepFn returns.
    // Throws the end of the input, an Error of OutOfRange, as TensorFlow's StopIteration: a program that catches it
    // continues.
    [[noreturn]] void RequestStop();

   private:
    Session& session_;
    muster::StepContext& context_;
  };
  // Calls `step_fn` once, and after a recovery again from its beginning. Throws as Run does, and what `step_fn` throws.
  void RunStepFn(const std::function<void(StepContext&)>& step_fn);

  // On the chief, between two runs: training continues from the checkpoint at `path` on every ps; the workers' next
  // step pulls its values. If it throws Error, everything stays as it was.
  void Restore(const std::string& path);

  // While the result lives, this worker does `what` ("evaluating") and isn't taken for one that hangs.
  [[nodiscard]] WorkerProgress::Busy Busy(const std::string& what) { return session_->Busy(what); }

  // Adds a value of this step for summaries and LoggingTensor; call it inside `loss`. As summary::Scalar (summaries.h).
  void AddScalar(const std::string& name, double value) { session_->AddScalar(name, value); }

  // Returns what a hook has fed for this step (FeedFn); call it inside `loss`. Throws Error: not fed, or of another
  // type.
  template <typename T>
  T Fed(const std::string& name) const {
    return ValueOrThrow(session_->Fed<T>(name));
  }

  // Ends hooks and threads, and tells the ps. A second call does nothing. The destructor calls it otherwise. Throws
  // Error.
  void Close();

  bool is_chief() const { return session_->is_chief(); }
  int64_t global_step() const { return session_->global_step(); }
  std::string last_checkpoint() const { return session_->last_checkpoint(); }
  // For the threads that training needs beside this one.
  Coordinator& coordinator() { return session_->coordinator(); }

 protected:
  MonitoredSession(Server& server, SessionOptions options, std::vector<std::shared_ptr<SessionHook>> hooks);
  Session& session() { return *session_; }

 private:
  std::unique_ptr<Session> session_;
  const int exceptions_;
};

// Adds the chief's hooks of TensorFlow's MonitoredTrainingSession: see SessionOptions.
class MonitoredTrainingSession final : public MonitoredSession {
 public:
  // Blocks until the model is initialised (or restored from options.checkpoint_dir). Throws Error.
  MonitoredTrainingSession(Server& server, SessionOptions options,
                           std::vector<std::shared_ptr<SessionHook>> hooks = {});
};

}  // namespace muster
