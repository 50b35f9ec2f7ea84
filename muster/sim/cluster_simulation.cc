#include "muster/sim/cluster_simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/store/calls/lease_beat.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/train/hooks/hooks.h"
#include "muster/transport/forwarding_channel.h"
#include "muster/transport/simulated/simulated_transport.h"

namespace muster {
namespace {

constexpr char kDirectory[] = "/model";
constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kGatePatience = absl::Minutes(5);
constexpr absl::Duration kWaitForChief = absl::Seconds(120);
// A ps that every task has left gives up after this time at the latest (LeaseOptions::abandoned_after plus a margin).
constexpr absl::Duration kPsEndsAfter = absl::Minutes(7);

std::vector<Stamp> HeartbeatStamps(const StoreClient& client) {
  std::vector<Stamp> stamps;
  for (int ps = 0; ps < client.num_ps(); ++ps) stamps.push_back(client.MakeStamp(ps, 0));
  return stamps;
}

LedgerForm FormOf(const Schedule& schedule) {
  if (schedule.work == ScheduledWork::kSynchronous) return LedgerForm::kAveraged;
  switch (schedule.scale) {
    case ScheduledScale::kMean:
      return LedgerForm::kMean;
    case ScheduledScale::kStaleness:
      return LedgerForm::kByStaleness;
    case ScheduledScale::kNone:
      break;
  }
  return LedgerForm::kWhole;
}

// Tells the ledger the number under which a worker's push leaves it: only the client assigns numbers.
class NumberedChannel final : public ForwardingChannel {
 public:
  NumberedChannel(std::unique_ptr<Channel> inner, PushLedger& ledger)
      : ForwardingChannel(std::move(inner)), ledger_(ledger) {}
  CallId Call(const Request& request, ReplyCallback done) override {
    PushPullRequest push;
    if (request.method == static_cast<uint16_t>(StoreMethod::kPushPull) && Decode(request.control, push).ok())
      ledger_.Number(push.stamp.incarnation, push.stamp.sequence);
    return inner_->Call(request, std::move(done));
  }

 private:
  PushLedger& ledger_;
};

}  // namespace

struct ClusterSimulation::PsLife {
  PsLife(SimulatedNetwork& network, SimulatedThread& thread, StoreOptions options)
      : loop(thread.loop()), transport(network, thread), service(thread.loop(), std::move(options)) {}

  EventLoop& loop;
  SimulatedTransport transport;
  StoreService service;
  std::unique_ptr<RequestHandler> planted;
  std::unique_ptr<StoreWatch> watch;
  std::unique_ptr<Listener> listener;
};

ClusterSimulation::ClusterSimulation(const Schedule& schedule, PlantedClusterBug* bug,
                                     std::function<void(absl::Time, const std::string&)> listener)
    : schedule_(schedule),
      bug_(bug),
      world_(schedule.seed),
      network_(world_.loop(), schedule.network, schedule.seed),
      slow_disk_(world_, disk_, absl::Milliseconds(20)),
      slow_other_disk_(world_, other_disk_, absl::Milliseconds(20)),
      ledger_(schedule.num_ps, FormOf(schedule)),
      ps_(schedule.num_ps),
      workers_(schedule.num_workers) {
  world_.SetListener(std::move(listener));
  truth_.leases.resize(schedule.num_ps);
  truth_.gates.resize(schedule.num_ps);
  truth_.turns.left.resize(schedule.num_ps);
  truth_.violated = [this](const std::string& what) { Violated(what); };
  truth_.note = [this](const std::function<std::string()>& line) { world_.Note(line); };
  for (int ps = 0; ps < schedule_.num_ps; ++ps) addresses_.push_back(absl::StrCat("ps", ps, ":2222"));
}

ClusterSimulation::~ClusterSimulation() {
  for (Ps& ps : ps_) ps.life.reset();
  world_.End();
}

std::string ClusterSimulation::TaskOf(int worker) const {
  return worker == 0 ? "chief:0" : absl::StrCat("worker:", worker - 1);
}

PlacementResult ClusterSimulation::Place() const {
  const Partitioning partitioning = {.kind = Partitioning::Kind::kFixed, .shards = schedule_.shards};
  return *PlaceVariables(LedgerVariables(schedule_.rows, ledger_.row()), schedule_.num_ps, Placement::kRoundRobin,
                         partitioning);
}

void ClusterSimulation::Violated(const std::string& what) {
  if (violation_) return;
  violation_ = what;
  world_.Note([&] { return absl::StrCat("VIOLATED: ", what); });
}

void ClusterSimulation::StartPs(int ps) {
  SimulatedProcess& process = world_.NewProcess(absl::StrCat("ps:", ps));
  ps_[ps].process = &process;
  world_.Note([&] { return absl::StrCat(process.name(), " starts"); });
  ps_[ps].probe = std::make_shared<DeadlyProbe>(process, bug_);
  process.Keep(ps_[ps].probe);
  ps_[ps].restart_after.reset();
  process.AtDeath([this, ps, &process] { PsDied(ps, process); });
  SimulatedThread& thread = process.NewThread();
  thread.Start([this, ps, &thread] { RunPs(ps, thread); });
}

// Called however the ps comes to its end.
void ClusterSimulation::PsDied(int ps, SimulatedProcess& process) {
  Ps& state = ps_[ps];
  world_.Note([&] { return absl::StrCat(process.name(), " is dead"); });
  // If it died during an update, it holds a lock, and the next life will judge its values.
  if (state.probe->dying()) truth_.gates[ps].interrupted = true;
  if (state.life && !state.probe->dying()) state.life->watch->VerifyAll();
  state.life.reset();
  network_.Close(process);
  if (!state.restart_after || state.finished) return;
  if (*state.restart_after != absl::InfiniteDuration())
    world_.At(world_.Now() + *state.restart_after, [this, ps] { StartPs(ps); });
}

void ClusterSimulation::RunPs(int ps, SimulatedThread& thread) {
  SimulatedThread& disk_thread = thread.process().NewThread("disk");
  disk_thread.Start([&disk_thread] { disk_thread.loop().RunUntil([] { return false; }, absl::InfiniteFuture()); });
  StoreOptions options{
      .task = thread.name(),
      .lead = ps == 0,
      .incarnation = ++incarnations_,
      .files = schedule_.ps_see_disk ? &slow_disk_ : &slow_other_disk_,
      .background = [&disk_thread](absl::AnyInvocable<void()> task) { disk_thread.loop().Post(std::move(task)); },
      .memory = *ArenaMemory::Adopt(ps_[ps].memory->fd()),
      .probe = ps_[ps].probe.get()};
  for (int worker = 0; worker < schedule_.num_workers; ++worker) options.workers.push_back(TaskOf(worker));
  auto life = std::make_shared<PsLife>(network_, thread, std::move(options));
  thread.process().Keep(life);
  if (const absl::Status recovered = life->service.Recover(); !recovered.ok())
    Violated(absl::StrCat(thread.name(), " could not recover: ", recovered.ToString()));
  if (bug_ != nullptr) life->planted = bug_->WrapPs(life->service, thread.loop());
  RequestHandler& first = life->planted ? *life->planted : life->service;
  life->watch = std::make_unique<StoreWatch>(
      ps, life->service, first, StoreWatch::Peers{&ledger_, &truth_, [this](int other) -> StoreService* {
                                                    const bool there = other < schedule_.num_ps && ps_[other].life;
                                                    return there ? &ps_[other].life->service : nullptr;
                                                  }});
  ps_[ps].probe->OnFired([&watch = *life->watch] { watch.OnFired(); });
  auto listener = life->transport.Listen(addresses_[ps], *life->watch);
  MUSTER_CHECK(listener.ok());
  life->listener = *std::move(listener);
  ps_[ps].life = life;
  thread.loop().RunUntil([&] { return life->service.finished(); }, absl::InfiniteFuture());
  world_.Note([&] { return absl::StrCat(thread.name(), " ends: ", life->service.outcome().ToString()); });
  if (!Allowed(life->service.outcome()))
    Violated(absl::StrCat(thread.name(), " ended with ", life->service.outcome().ToString()));
  ps_[ps].finished = true;
  life->listener.reset();
}

void ClusterSimulation::StartWorker(int worker) {
  SimulatedProcess& process = world_.NewProcess(TaskOf(worker));
  auto stop = std::make_shared<bool>(false);
  Worker& state = workers_[worker];
  state.process = &process;
  state.running = true;
  state.stop = stop;
  world_.Note([&] { return absl::StrCat(process.name(), " starts"); });
  ++worker_processes_;
  process.AtDeath([this, &process] {
    --worker_processes_;
    network_.Close(process);
  });
  SimulatedThread& thread = process.NewThread();
  state.training = &thread;
  thread.Start([this, worker, stop, &thread] {
    const absl::Status status = RunWorker(worker, thread, *stop);
    WorkerEnded(worker, thread.process(), status);
  });
}

void ClusterSimulation::StartHeartbeats(SimulatedThread& thread, StoreClient& client) {
  SimulatedThread& beats = thread.process().NewThread("heartbeats");
  beats.Start([this, &beats, stamps = HeartbeatStamps(client), &progress = client.progress()] {
    SimulatedTransport own(network_, beats);
    LeaseBeat beat(own, addresses_, stamps, progress, LeaseOptions().lease / 4);
    beats.loop().RunUntil([] { return false; }, absl::InfiniteFuture());
  });
}

absl::Status ClusterSimulation::RunWorker(int worker, SimulatedThread& thread, const bool& stop) {
  const bool first_life = !std::exchange(workers_[worker].has_lived, true);
  SimulatedTransport plain(network_, thread);
  WrappingTransport transport(plain, [this](std::unique_ptr<Channel> inner) {
    std::unique_ptr<Channel> channel = std::make_unique<NumberedChannel>(std::move(inner), ledger_);
    return bug_ != nullptr ? bug_->WrapChannel(std::move(channel)) : std::move(channel);
  });
  const uint64_t incarnation = ++incarnations_;
  StoreClient client(transport, addresses_,
                     {.task = thread.name(),
                      .where = absl::StrCat("life ", incarnation),
                      .incarnation = incarnation,
                      .patience = kPatience,
                      .transfer_patience = absl::Seconds(60),
                      .gate_patience = kGatePatience,
                      .stop_requested = [&stop] { return stop; },
                      .part_bytes = schedule_.in_parts ? 1U : 0U});
  LedgerSource source({.worker = worker,
                       .life = incarnation,
                       .rows = schedule_.rows,
                       .compute = schedule_.compute,
                       .window = schedule_.window,
                       .moves = schedule_.differences,
                       .placement = Place(),
                       .thread = &thread,
                       .ledger = &ledger_,
                       .violated = truth_.violated});
  LedgerAlgorithm algorithm(source, ledger_, Place(), schedule_);
  SessionOptions options{.save_checkpoint_steps = schedule_.save_steps,
                         .save_summaries_steps = 0,
                         .log_step_count_steps = 0,
                         .max_wait_secs = absl::ToDoubleSeconds(kWaitForChief),
                         .keep_checkpoint_max = 2};
  if (schedule_.save_steps > 0) options.checkpoint_dir = kDirectory;
  Session session({.client = &client,
                   .algorithm = &algorithm,
                   .loop = &thread.loop(),
                   .files = &slow_disk_,
                   .clock = &world_.clock(),
                   .is_chief = worker == 0,
                   .target = "muster://here:1",
                   .stop_requested = [&stop] { return stop; },
                   .on_joined = [&] { StartHeartbeats(thread, client); }},
                  std::move(options), {StopAtStep({.last_step = schedule_.last_step})});
  RETURN_IF_ERROR(session.Start());
  const auto barrier = [&](const char* name, bool elastic) {
    const absl::Status passed = client.Barrier(name, static_cast<uint32_t>(schedule_.num_workers), elastic);
    // Interrupted, or training was shut down: the session notices too, and ends well.
    return absl::IsCancelled(passed) ? absl::OkStatus() : passed;
  };
  if (schedule_.barriers && first_life) RETURN_IF_ERROR(barrier("begin", /*elastic=*/false));
  RETURN_IF_ERROR(Train(session));
  // A worker that is missing in a round, or behind with its clock, must not be waited for at a barrier.
  if (schedule_.barriers && schedule_.NobodyWaits()) RETURN_IF_ERROR(barrier("end", /*elastic=*/true));
  return session.Close();
}

absl::Status ClusterSimulation::Train(Session& session) {
  const int64_t share = schedule_.own_minibatches;
  for (int64_t minibatch = 0; !session.ShouldStop() && (share == 0 || minibatch < share); ++minibatch)
    RETURN_IF_ERROR(session.Run());
  return absl::OkStatus();
}

void ClusterSimulation::WorkerEnded(int worker, SimulatedProcess& process, const absl::Status& status) {
  world_.Note([&] { return absl::StrCat(process.name(), " ends: ", status.ToString()); });
  if (!Allowed(status)) Violated(absl::StrCat(process.name(), " ended with ", status.ToString()));
  Worker& state = workers_[worker];
  if (state.process != &process) return;  // another process has taken its place
  state.running = false;
  state.succeeded = status.ok();
  if (status.ok() || state.restarts == schedule_.restarts) return;
  ++state.restarts;
  state.running = true;
  world_.At(world_.Now() + absl::Seconds(1), [this, worker] { StartWorker(worker); });
}

bool ClusterSimulation::Allowed(const absl::Status& status) const {
  if (status.ok()) return true;
  // All tasks had said "done" and the ps have gone, but one answer was lost, or a task came too late.
  const bool ps_gone = std::any_of(ps_.begin(), ps_.end(), [](const Ps& ps) { return ps.finished; });
  if (schedule_.MustSucceed()) return ps_gone && (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status));
  if (IsInterrupted(status)) return true;  // a ps was unavailable
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:         // a ps is gone
    case absl::StatusCode::kDeadlineExceeded:    // the chief is gone, so the model isn't ready
    case absl::StatusCode::kAborted:             // a ps has lost its model
    case absl::StatusCode::kFailedPrecondition:  // replaced; not the chief any more
    case absl::StatusCode::kAlreadyExists:       // the task's other process is alive
      return true;
    default:
      return false;
  }
}

void ClusterSimulation::KillPs(const ScheduledFault& fault) {
  Ps& ps = ps_[fault.ps];
  if (ps.process == nullptr || !ps.process->alive() || ps.restart_after) return;
  ps.restart_after = fault.lasts;
  if (fault.kind == ScheduledFaultKind::kKillPsInside && !fault.forgets) return ps.probe->KillAfter(fault.passes);
  ps.process->Kill();
  CheckCheckpoints();
  if (!fault.forgets) return;
  truth_.turns.memory_lost = true;
  ps.memory = *ArenaMemory::Create();
  ledger_.EndGeneration(fault.ps);
}

void ClusterSimulation::KillWorker(int worker, absl::Duration dead_for) {
  Worker& state = workers_[worker];
  if (state.process == nullptr || !state.process->alive()) return;
  state.process->Kill();
  CheckCheckpoints();
  state.running = dead_for != absl::InfiniteDuration();
  if (state.running) world_.At(world_.Now() + dead_for, [this, worker] { StartWorker(worker); });
}

void ClusterSimulation::Meet(const ScheduledFault& fault) {
  using Kind = ScheduledFaultKind;
  world_.Note([&] { return fault.ToString(); });
  Worker& worker = workers_[fault.worker];
  const bool worker_there = worker.process != nullptr && worker.process->alive();
  switch (fault.kind) {
    case Kind::kKillWorker:
      return KillWorker(fault.worker, fault.lasts);
    case Kind::kKillPs:
    case Kind::kKillPsInside:
      return KillPs(fault);
    case Kind::kPauseWorker:
      if (worker_there) worker.process->Pause(world_.Now() + fault.lasts);
      return;
    case Kind::kHangWorker:
      if (worker_there) worker.training->Pause(world_.Now() + fault.lasts);
      return;
    case Kind::kPausePs:
      if (ps_[fault.ps].process != nullptr) ps_[fault.ps].process->Pause(world_.Now() + fault.lasts);
      return;
    case Kind::kReplaceWorker:
      if (!worker_there) return;
      worker.process->Pause(world_.Now() + fault.lasts);
      world_.At(world_.Now() + fault.then, [this, number = fault.worker, old = worker.process] {
        if (workers_[number].process == old && old->alive()) StartWorker(number);
      });
      return;
    case Kind::kCut:
      return network_.Cut(TaskOf(fault.worker), absl::StrCat("ps:", fault.ps), fault.lasts, fault.then);
    case Kind::kPart:
      return network_.Part(TaskOf(fault.worker), absl::StrCat("ps:", fault.ps), world_.Now() + fault.lasts);
    case Kind::kDeafWorker:
      return network_.PartTowards(absl::StrCat("ps:", fault.ps), TaskOf(fault.worker), world_.Now() + fault.lasts);
    case Kind::kMuteWorker:
      return network_.PartTowards(TaskOf(fault.worker), absl::StrCat("ps:", fault.ps), world_.Now() + fault.lasts);
    case Kind::kStopWorker:
      if (worker.stop) *worker.stop = true;
      return;
    case Kind::kShutdown:
      for (Ps& ps : ps_)
        if (ps.life) ps.life->loop.Post([&service = ps.life->service] { service.Shutdown("a signal"); });
  }
}

bool ClusterSimulation::Over() {
  if (violation_) return true;
  if (std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.running; })) return false;
  if (!workers_ended_ && worker_processes_ == 0) {
    workers_ended_ = world_.Now();
    world_.At(world_.Now() + kPsEndsAfter, [] {});
  }
  return std::none_of(ps_.begin(), ps_.end(), [](const Ps& ps) { return ps.life != nullptr; }) ||
         (workers_ended_ && world_.Now() >= *workers_ended_ + kPsEndsAfter);
}

SimulationOutcome ClusterSimulation::Run() {
  const absl::Time started = world_.Now();
  for (int ps = 0; ps < schedule_.num_ps; ++ps) {
    ps_[ps].memory = *ArenaMemory::Create();
    StartPs(ps);
  }
  for (int worker = 0; worker < schedule_.num_workers; ++worker) StartWorker(worker);
  for (const ScheduledFault& fault : schedule_.faults) world_.At(started + fault.at, [this, &fault] { Meet(fault); });
  CheckEnd(world_.Run([this] { return Over(); }, {.time = absl::Hours(1)}));
  return {.violation = violation_,
          .fingerprint = world_.fingerprint(),
          .events = world_.events(),
          .simulated = world_.Now() - started,
          .pushes = ledger_.acknowledged(),
          .minibatches = ledger_.minibatches(),
          .lost = ledger_.lost()};
}

void ClusterSimulation::CheckEnd(SimulatedWorld::Ending ending) {
  if (violation_) return;
  for (int worker = 0; worker < schedule_.num_workers; ++worker)
    if (ending != SimulatedWorld::Ending::kOver && workers_[worker].running)
      Violated(absl::StrCat(TaskOf(worker), " never ends (",
                            ending == SimulatedWorld::Ending::kStuck ? "nothing happens any more" : "too long", ")"));
  for (Ps& ps : ps_) {
    if (!ps.life) continue;
    ps.life->watch->VerifyAll();
    // A ps to which no task ever came waits for as long as its launcher lets it.
    const auto& clients = ps.life->service.MakeView().clients->clients();
    if (std::any_of(clients.begin(), clients.end(), [](const auto& client) { return client.incarnation != 0; }))
      Violated(absl::StrCat(ps.process->name(), " never ends"));
  }
  CheckCheckpoints();
}

// Checks that every checkpoint in the directory can be read and holds what its step counts.
void ClusterSimulation::CheckCheckpoints() {
  if (schedule_.save_steps == 0 || violation_) return;
  const auto names = ListCheckpoints(disk_, kDirectory);
  if (!names.ok()) return;  // there is no directory yet
  for (const std::string& name : *names)
    if (const auto wrong = WrongWith(name)) return Violated(absl::StrCat("checkpoint ", name, " ", *wrong));
}

std::optional<std::string> ClusterSimulation::WrongWith(const std::string& checkpoint) {
  const auto reader = CheckpointReader::Open(disk_, JoinPath(kDirectory, checkpoint));
  if (!reader.ok()) return absl::StrCat("can't be read: ", reader.status().ToString());
  const int64_t step = (*reader)->manifest().global_step;
  const std::vector<VariableSpec> variables = LedgerVariables(schedule_.rows, ledger_.row());
  const PlacementResult placement = Place();
  std::vector<double> values(schedule_.rows * ledger_.row());
  std::vector<PushLedger::Row> rows;
  std::vector<PushLedger::Digits> digits(schedule_.rows);
  for (int variable = 0; variable < PushLedger::kVariables; ++variable) {
    const absl::Status read =
        (*reader)->ReadVariable(variables[variable].name, AsMutableBytes(values.data(), values.size()));
    if (!read.ok()) return absl::StrCat("can't be read: ", read.ToString());
    if (const auto wrong = ledger_.ReadRows(AsBytes(values.data(), values.size()), rows)) return wrong;
    std::vector<int> ps_of_row(rows.size());
    for (const PlacedSlice& slice : placement.slices)
      if (slice.variable == variable)
        for (int64_t i = 0; i < slice.elements; i += ledger_.row())
          ps_of_row[(slice.offset + i) / ledger_.row()] = slice.ps;
    for (size_t i = 0; i < rows.size(); ++i)
      if (const auto wrong = ledger_.ReadDigits(AsBytes(&values[i * ledger_.row()], ledger_.row()), digits[i]))
        return wrong;
    if (const auto wrong = truth_.checkpoints.Check(step, variable, digits, rows, ps_of_row)) return wrong;
  }
  return std::nullopt;
}

}  // namespace muster
