// The smallest training program, without torch, for tests that start, kill and misuse it. The gradient of its variables
// is their value, or a constant with which every sum is a predictable integer. Everything else is as in a user's
// program, so its output and its end are what users see.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/all_reduce.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/algo/algorithms/synchronous.h"
#include "muster/base/log.h"
#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/data/work_source.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/node/node.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

struct Flags {
  int64_t steps = 100;
  int64_t width = 1000;
  int64_t log_steps = 1;
  int64_t save_steps = 1000000;    // the first and the last step are always saved
  double last_save_patience = 60;  // seconds
  double lease = absl::ToDoubleSeconds(LeaseOptions().lease);
  double patience = 60;      // seconds
  double stop_patience = 5;  // seconds
  double learning_rate = 0.01;
  std::optional<float> gradient;  // of every element; unset: the element's value
  std::optional<bool> is_chief;
  std::string apply = "server";  // most tests look at what the ps do
  std::string transport = "auto";
  size_t part_bytes = 0;
  bool pipelined = false;
  uint32_t aggregate = 0;  // 0: asynchronous
  bool elastic = false;
  bool all_reduce = false;
  std::optional<uint32_t> staleness;
  int64_t share_unit = 0;
  int64_t share_epochs = 0;
  int pipe_bytes = 0;
  std::string hang_at;
  std::string throw_in;
  std::string note_steps;
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app("A training program for tests.", "toy_worker");
  app.add_option("--steps", flags.steps, "stop at this global step");
  app.add_option("--width", flags.width, "elements of the variable");
  app.add_option("--log_steps", flags.log_steps, "steps between lines of the log");
  app.add_option("--save_steps", flags.save_steps, "steps between checkpoints");
  app.add_option("--last_save_patience", flags.last_save_patience, "SessionOptions::last_save_patience_secs");
  app.add_option("--lease", flags.lease, "NodeOptions::lease, seconds");
  app.add_option("--patience", flags.patience, "NodeOptions::patience, seconds");
  app.add_option("--stop_patience", flags.stop_patience, "NodeOptions::stop_patience, seconds");
  app.add_option("--learning_rate", flags.learning_rate, "of SGD");
  app.add_option("--gradient", flags.gradient, "of every element; unset: its value");
  app.add_option("--is_chief", flags.is_chief, "SessionOptions::is_chief");
  app.add_option("--apply", flags.apply, "NodeOptions::apply: server, direct or auto");
  app.add_option("--transport", flags.transport, "NodeOptions::transport: auto or tcp");
  app.add_option("--part_bytes", flags.part_bytes, "NodeOptions::part_bytes");
  app.add_flag("--pipelined", flags.pipelined, "asynchronous, one step stale");
  app.add_option("--aggregate", flags.aggregate, "synchronous: gradients that make an update; 0: asynchronous");
  app.add_flag("--elastic", flags.elastic, "synchronous: nobody waits for the dead");
  app.add_flag("--all_reduce", flags.all_reduce, "in a cluster without ps");
  app.add_option("--staleness", flags.staleness, "the bound of bounded staleness");
  app.add_option(
      "--share_unit", flags.share_unit,
      "elements of a unit of the work queue, by which each update has a gradient for its unit's elements alone");
  app.add_option("--share_epochs", flags.share_epochs, "of the work queue; 0: for ever");
  app.add_option("--pipe_bytes", flags.pipe_bytes,
                 "that the pipe of stderr holds: how far training gets ahead of who reads it");
  app.add_option("--hang_at", flags.hang_at,
                 "a FIFO: in the tenth minibatch the training thread hangs until somebody opens it");
  app.add_option("--note_steps", flags.note_steps,
                 "a folder with a file for each life of a task, written in each step");
  app.add_option("--throw_in", flags.throw_in, "where a hook throws: in that method; of a run's, in the fifth run")
      ->check(CLI::IsMember({"begin", "after_create", "before_run", "after_run", "end"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "toy_worker: %s\n", error.what());
    std::exit(static_cast<int>(ExitCode::kUsage));
  }
  return flags;
}

// Prepares some units before they are trained on, as an input pipeline does.
class UnitsAhead {
 public:
  explicit UnitsAhead(std::shared_ptr<WorkSource> source) : source_(std::move(source)), thread_([this] { Fetch(); }) {}
  ~UnitsAhead() {
    source_->Stop();
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  UnitsAhead(const UnitsAhead&) = delete;
  UnitsAhead& operator=(const UnitsAhead&) = delete;

  // Ends the previous step and returns the next unit. OutOfRange: there are no more units, or a stop was requested.
  absl::StatusOr<WorkUnit> Next() {
    RETURN_IF_ERROR(source_->Done());
    for (;;) {
      ASSIGN_OR_RETURN(const WorkUnit unit, Pop());
      if (source_->Begin()) return unit;
    }
  }

 private:
  static constexpr size_t kAhead = 3;

  absl::StatusOr<WorkUnit> Pop() {
    const MutexLock lock(mutex_);
    while (units_.empty() && end_.ok()) changed_.Wait(mutex_);
    if (units_.empty()) {
      changed_.NotifyAll();
      return absl::IsAborted(end_) ? std::exchange(end_, absl::OkStatus()) : end_;
    }
    const WorkUnit unit = units_.front();
    units_.pop_front();
    changed_.NotifyAll();
    return unit;
  }
  void Fetch() {
    for (;;) {
      {
        const MutexLock lock(mutex_);
        while (units_.size() >= kAhead && !stopping_) changed_.Wait(mutex_);
        if (stopping_) return;
      }
      const auto unit = source_->Take();
      const MutexLock lock(mutex_);
      changed_.NotifyAll();
      if (unit.ok() && *unit) {
        units_.push_back(**unit);
        continue;
      }
      const bool over = unit.ok() || absl::IsCancelled(unit.status());
      end_ = over ? absl::OutOfRangeError("all units are done") : unit.status();
      // The session must join again; its next step tells it so.
      while (absl::IsAborted(end_) && !stopping_) changed_.Wait(mutex_);
      if (!end_.ok()) return;
    }
  }

  const std::shared_ptr<WorkSource> source_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<WorkUnit> units_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all the others
};

class ToySource final : public GradientSource {
 public:
  ToySource(int64_t width, std::optional<float> gradient)
      : variables_{{.name = "w", .shape = {width}}, {.name = "b", .shape = {2}}},
        gradient_(gradient),
        values_(2),
        gradients_(2),
        owners_(2) {
    for (size_t i = 0; i < variables_.size(); ++i) {
      values_[i].assign(static_cast<size_t>(variables_[i].elements()), 1.0f);
      views_.emplace_back(values_[i]);
    }
  }
  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return AsMutableBytes(views_[i].data(), views_[i].size()); }
  bool UseMemory(size_t i, MutableByteSpan memory, std::shared_ptr<void> owner) override {
    views_[i] = {reinterpret_cast<float*>(memory.data()), views_[i].size()};
    owners_[i] = std::move(owner);
    return true;
  }
  // The tenth minibatch hangs until somebody opens `fifo`; empty: it doesn't.
  void HangAt(std::string fifo) { hang_at_ = std::move(fifo); }
  // From now on a step changes the elements of one unit only. `units` must outlive the source's last step.
  void LearnFrom(UnitsAhead* units) { units_ = units; }
  absl::StatusOr<double> ComputeGradients() override {
    if (++minibatches_ == 10 && !hang_at_.empty()) close(open(hang_at_.c_str(), O_RDONLY | O_CLOEXEC));
    WorkUnit unit{.end = std::numeric_limits<int64_t>::max()};
    if (units_ != nullptr) {
      ASSIGN_OR_RETURN(unit, units_->Next());
    }
    for (size_t i = 0; i < views_.size(); ++i) gradients_[i].assign(views_[i].begin(), views_[i].end());
    for (std::vector<float>& gradient : gradients_)
      if (gradient_) std::fill(gradient.begin(), gradient.end(), *gradient_);
    for (int64_t i = 0; i < variables_[0].elements(); ++i)
      if (i < unit.begin || i >= unit.end) gradients_[0][static_cast<size_t>(i)] = 0;
    const double loss = *std::max_element(views_[0].begin(), views_[0].end());
    // From the last to the first, like a backward pass.
    for (size_t i = views_.size(); ready_ && i-- > 0;) ready_(i);
    return loss;
  }
  void AnnounceGradients(GradientReady ready) override { ready_ = std::move(ready); }
  ByteSpan gradient(size_t i) override {
    return {reinterpret_cast<const std::byte*>(gradients_[i].data()), gradients_[i].size() * sizeof(float)};
  }

 private:
  const std::vector<VariableSpec> variables_;
  const std::optional<float> gradient_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
  std::vector<std::span<float>> views_;  // into values_ or the store's memory
  std::vector<std::shared_ptr<void>> owners_;
  GradientReady ready_;
  std::string hang_at_;
  int64_t minibatches_ = 0;
  UnitsAhead* units_ = nullptr;  // null: each step changes all elements
};

// Imitates a user's hook with a bug.
class ThrowingHook final : public SessionHook {
 public:
  explicit ThrowingHook(std::string where) : where_(std::move(where)) {}
  absl::Status Begin() override { return Reach("begin"); }
  absl::Status AfterCreateSession(const SessionContext&) override { return Reach("after_create"); }
  absl::Status BeforeRun(RunContext&) override { return ++runs_ < 5 ? absl::OkStatus() : Reach("before_run"); }
  absl::Status AfterRun(RunContext&, const RunValues&) override {
    return runs_ < 5 ? absl::OkStatus() : Reach("after_run");
  }
  absl::Status End(const SessionContext&) override { return Reach("end"); }

 private:
  absl::Status Reach(const char* where) const {
    if (where_ == where) throw std::runtime_error("thrown in " + where_);
    return absl::OkStatus();
  }

  const std::string where_;  // empty: never
  int runs_ = 0;
};

std::unique_ptr<Algorithm> MakeAlgorithm(ToySource& source, PlacementResult placement, const Flags& flags, Node& node) {
  const RuleSpec rule = {.learning_rate = flags.learning_rate};
  if (flags.pipelined) return std::make_unique<PipelinedAlgorithm>(source, std::move(placement), rule);
  if (flags.all_reduce) {
    const auto join = [&node](absl::Time deadline) -> absl::StatusOr<std::unique_ptr<Collective>> {
      ASSIGN_OR_RETURN(const GroupOptions group, node.MakeGroupOptions());
      return JoinGroup(group, deadline);
    };
    // One bucket per variable, so that a worker can die between two.
    return std::make_unique<AllReduceAlgorithm>(source, std::move(placement), rule, join,
                                                AllReduceOptions{.bucket_bytes = 1});
  }
  if (flags.staleness)
    return std::make_unique<BoundedStalenessAlgorithm>(source, std::move(placement), rule, *flags.staleness);
  const size_t num_workers = node.task().worker_tasks().size();
  if (flags.aggregate == 0) return std::make_unique<AsynchronousAlgorithm>(source, std::move(placement), rule);
  return std::make_unique<SynchronousAlgorithm>(source, std::move(placement), rule,
                                                SynchronousOptions{.replicas_to_aggregate = flags.aggregate,
                                                                   .total_replicas = static_cast<uint32_t>(num_workers),
                                                                   .elastic = flags.elastic});
}

// Writes into a file of this life of the task, whose age then tells when its last step was acknowledged.
absl::Status NoteStep(const TaskId& task, const Environment& process, const std::string& folder) {
  std::ofstream file(absl::StrCat(folder, "/", task.job, ".", task.index, ".", TaskLifeOf(process)));
  file << "a step\n";
  return file.flush() ? absl::OkStatus() : absl::UnknownError("can't write to " + folder);
}

absl::Status Run(const TaskConfig& task, const Flags& flags) {
  const Environment process = ReadEnvironment();
  NodeOptions options{
      .token = {.secret = process.job_token.value_or(""), .cluster_file = process.cluster_file.value_or("")},
      .patience = absl::Seconds(flags.patience),
      .stop_patience = absl::Seconds(flags.stop_patience),
      .apply = ParseApplyChoice(flags.apply).value(),
      .transport = ParseTransportChoice(flags.transport).value(),
      .arena_fd = process.arena_fd.value_or(""),
      .heard_file = process.heard_file.value_or(""),
      .life = TaskLifeOf(process),
      .part_bytes = flags.part_bytes};
  options.lease.lease = absl::Seconds(flags.lease);
  ASSIGN_OR_RETURN(const auto node, Node::Create(task, options));
  if (task.is_ps()) return node->Join();
  // There is nothing to evaluate; the evaluator waits until it is killed.
  while (task.is_evaluator()) pause();

  ToySource source(flags.width, flags.gradient);
  source.HangAt(flags.hang_at);
  PlacementResult placement;
  if (node->num_ps() > 0) {
    ASSIGN_OR_RETURN(placement, PlaceVariables(source.variables(), node->num_ps(), Placement::kRoundRobin, {}));
  }
  const auto algorithm = MakeAlgorithm(source, std::move(placement), flags, *node);
  node->SetAlgorithm(algorithm.get());
  std::optional<UnitsAhead> units;
  if (flags.share_unit > 0) {
    ASSIGN_OR_RETURN(
        auto work, node->OpenWorkQueue(
                       "rows", {.rows = flags.width, .rows_per_unit = flags.share_unit, .epochs = flags.share_epochs}));
    units.emplace(std::move(work));
    source.LearnFrom(&*units);
  }
  ASSIGN_OR_RETURN(SessionEnvironment environment, node->MakeSessionEnvironment());
  Session session(std::move(environment),
                  {.is_chief = flags.is_chief,
                   .checkpoint_dir = task.model_dir(),
                   .save_checkpoint_steps = flags.save_steps,
                   .log_step_count_steps = 0,
                   .last_save_patience_secs = flags.last_save_patience},
                  {StopAtStep({.last_step = flags.steps}), LoggingTensor({.every_n_iter = flags.log_steps}),
                   std::make_shared<ThrowingHook>(flags.throw_in)});
  RETURN_IF_ERROR(session.Start());
  while (!session.ShouldStop()) {
    RETURN_IF_ERROR(session.Run());
    // A run that a stop has ended has done no step.
    if (!flags.note_steps.empty() && !session.ShouldStop())
      RETURN_IF_ERROR(NoteStep(task.task(), process, flags.note_steps));
  }
  return session.Close();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const muster::Flags flags = muster::ParseFlags(argc, argv);
  // If this fails, the pipe holds more.
  if (flags.pipe_bytes > 0) static_cast<void>(fcntl(STDERR_FILENO, F_SETPIPE_SZ, flags.pipe_bytes));
  muster::SetUpLog(task.task().ToString());
  const absl::Status status = muster::Run(task, flags);
  if (!status.ok()) std::fprintf(stderr, "toy_worker: %s\n", std::string(status.message()).c_str());
  return static_cast<int>(muster::ExitCodeOf(status));
}
