#include "muster/train/node/node.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/files/counter_file.h"
#include "muster/base/log.h"
#include "muster/base/os/descriptor_limit.h"
#include "muster/base/os/flush_denormals.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/address.h"
#include "muster/cluster/identity/job_token.h"
#include "muster/store/messages/incarnation.h"
#include "muster/store/queues/queue_spec.h"
#include "muster/store/work/local_work.h"
#include "muster/train/node/remote_work.h"
#include "muster/train/watch/training_status.h"
#include "muster/transport/loopback/loopback_transport.h"

namespace muster {
namespace {

constexpr char kLocalAddress[] = "localhost:0";

ApplyChoice ApplyOf(const NodeOptions& options) {
  const bool over_tcp = options.transport == TransportChoice::kTcp && options.apply == ApplyChoice::kAuto;
  return over_tcp ? ApplyChoice::kServer : options.apply;
}

// Returns whether the cluster has tasks on other hosts than this one's.
bool IsOverHosts(const TaskConfig& task) {
  const auto own = ParseHostPort(task.master());
  const std::vector<TaskId> all = task.cluster().AllTasks();
  return std::any_of(all.begin(), all.end(), [&](const TaskId& one) {
    const auto address = task.cluster().TaskAddress(one);
    const auto other = address.ok() ? ParseHostPort(*address) : address.status();
    return own.ok() && other.ok() && other->host != own->host;
  });
}

// Returns StoreOptions::supervisor_count.
std::function<std::optional<uint64_t>()> SupervisorCountOf(const TaskConfig& task, const std::string& heard_file) {
  if (heard_file.empty() || !IsOverHosts(task)) return nullptr;
  return [heard_file] { return ReadCounter(heard_file); };
}

TaskAddresses AddressesOf(const TaskConfig& task, bool allow_proxy) {
  TaskAddresses addresses{.own = task.master(), .allow_proxy = allow_proxy};
  for (const TaskId& other : task.cluster().AllTasks())
    if (other != task.task()) addresses.others.push_back(*task.cluster().TaskAddress(other));
  return addresses;
}

}  // namespace

Node::Node(const TaskConfig& task, NodeOptions options)
    : task_(task), options_(std::move(options)), started_(RealClock().Now()) {}

Node::~Node() = default;

absl::StatusOr<std::unique_ptr<Node>> Node::Create(const TaskConfig& task, NodeOptions options) {
  if (options.threads < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("NodeOptions::threads is ", options.threads, "; accepted: 0, by the cores of this host, or more"));
  RaiseDescriptorLimit();
  RETURN_IF_ERROR(CheckJobToken(options.token.secret));
  options.token.tasks = AddressesOf(task, options.token.tasks.allow_proxy);
  // Must come first, because threads inherit it.
  if (options.flush_denormals) FlushDenormals();
  auto node = std::unique_ptr<Node>(new Node(task, std::move(options)));
  RETURN_IF_ERROR(node->StartObserving());
  if (task.is_ps()) {
    RETURN_IF_ERROR(task.ExplainBusyPort(node->StartPs()));
    return node;
  }
  if (task.is_evaluator()) return node;
  node->stop_signal_ = std::make_unique<StopSignal>([loop = &node->loop_] { loop->Post([] {}); });
  // Without ps every worker has a store of its own.
  if (task.num_ps() == 0) {
    RETURN_IF_ERROR(node->StartLocalStore());
    return node;
  }
  node->transport_ = MakeTransport(node->options_.transport, node->loop_, node->options_.token);
  node->StartClient(task.ps_addresses());
  return node;
}

absl::Status Node::StartObserving() {
  const std::string name = task_.task().ToString();
  ASSIGN_OR_RETURN(tracer_, Tracer::Open({.path = task_.trace_part(), .task = name}, PosixFileSystem(), trace_clock_));
  if (tracer_->writes()) LogInfo("a trace of ", name, " goes to ", tracer_->path());
  const std::vector<std::string> ps = task_.ps_addresses();
  const bool is_reference = task_.is_ps() && task_.task().index == 0;
  if (tracer_->writes() && !ps.empty() && !is_reference)
    clock_probe_ = std::make_unique<ClockProbe>(options_.token, ps[0], *tracer_);
  if (task_.is_ps()) return absl::OkStatus();
  if (task_.is_evaluator()) metrics_.state.Set(static_cast<double>(TrainingState::kEvaluating));
  training_ = tracer_->AddTrack("training");
  if (!task_.status_address()) return absl::OkStatus();
  const TrainingView view{
      .task = name, .metrics = &metrics_, .track = training_, .clock = &RealClock(), .started = started_};
  ASSIGN_OR_RETURN(status_server_,
                   StatusServer::Start(*task_.status_address(),
                                       {.title = name,
                                        .status = [view] { return TrainingStatusJson(view); },
                                        .text = TrainingStatusText,
                                        .metrics = [view](const std::string&) { return TrainingMetricsText(view); }},
                                       options_.token.secret));
  LogInfo(name, " shows its status at ", status_server_->url());
  return absl::OkStatus();
}

absl::Status Node::StartPs() {
  if (asked_device().gpu)
    LogInfo("a ps never touches a GPU: ", asked_device().ToString(), " is for the tasks that compute");
  std::vector<std::string> workers;
  for (const TaskId& worker : task_.worker_tasks()) workers.push_back(worker.ToString());
  std::shared_ptr<ArenaMemory> memory;
  if (!options_.arena_fd.empty()) {
    int fd = -1;
    if (!absl::SimpleAtoi(options_.arena_fd, &fd))
      return absl::InvalidArgumentError(absl::StrCat("MUSTER_ARENA_FD is '", options_.arena_fd,
                                                     "'; accepted: the number of an inherited descriptor"));
    ASSIGN_OR_RETURN(memory, ArenaMemory::Adopt(fd));
  }
  ASSIGN_OR_RETURN(ps_, PsServer::Start({.address = task_.master(),
                                         .name_patience = task_.join_timeout().value_or(absl::ZeroDuration()),
                                         .token = options_.token,
                                         .store = {.task = task_.task().ToString(),
                                                   .lead = task_.task().index == 0,
                                                   .workers = std::move(workers),
                                                   .lease = LeaseOfPs(),
                                                   .linger = task_.linger().value_or(kUsualLinger),
                                                   .model_dir = task_.model_dir(),
                                                   .memory = std::move(memory),
                                                   .supervisor_count = SupervisorCountOf(task_, options_.heard_file)},
                                         .transport = options_.transport,
                                         .direct = ApplyOf(options_) != ApplyChoice::kServer,
                                         .tracer = tracer_.get(),
                                         .status_address = task_.status_address(),
                                         .has_launcher = options_.life > 0 || task_.leaves_on_signal()}));
  return absl::OkStatus();
}

absl::Status Node::StartLocalStore() {
  transport_ = std::make_unique<LoopbackTransport>(network_, loop_);
  background_ = std::make_unique<BackgroundThread>();
  if (HasOwnCopy() && (options_.apply != ApplyChoice::kAuto || options_.wire.narrow()))
    LogWarning(
        "the options for who applies updates and for the precision on the wire have no effect without ps: each worker "
        "updates its own copy of the model, in fp32");
  if (ApplyOfClient() != ApplyChoice::kServer) port_ = ArenaListener::OpenOrWarn();
  // This process is the store's only client: it is alive, however long it takes between two steps.
  const LeaseOptions never_lost = {.lease = absl::InfiniteDuration(), .abandoned_after = absl::InfiniteDuration()};
  work_ = std::make_shared<WorkQueue>(/*clients=*/1);
  local_store_ = std::make_unique<StoreService>(
      loop_, StoreOptions{.workers = {task_.task().ToString()},
                          .lease = never_lost,
                          .files = &PosixFileSystem(),
                          .background = [this](absl::AnyInvocable<void()> task) { background_->Run(std::move(task)); },
                          .one_process = true,
                          .port = port_.get(),
                          .track = tracer_->AddTrack("service"),
                          .work = work_});
  ASSIGN_OR_RETURN(local_listener_, transport_->Listen(kLocalAddress, *local_store_));
  local_store_->SetListenerStats([this] { return local_listener_->stats(); });
  StartClient({local_listener_->address()});
  return absl::OkStatus();
}

void Node::StartClient(std::vector<std::string> ps_addresses) {
  client_ = std::make_unique<StoreClient>(
      *transport_, std::move(ps_addresses),
      StoreClientOptions{.task = task_.task().ToString(),
                         .where = ThisProcess(),
                         .incarnation = NewIncarnation(),
                         .life = options_.life,
                         .patience = options_.patience,
                         .first_patience = task_.join_timeout().value_or(options_.patience),
                         .join_patience = options_.lease.lease + absl::Seconds(2),
                         .stop_requested = [this] { return stop_signal_->raised(); },
                         .stop_patience = options_.stop_patience,
                         .apply = ApplyOfClient(),
                         .tcp_asked_for = options_.transport == TransportChoice::kTcp,
                         .wire = WireOfClient(),
                         .probe = options_.probe,
                         .track = training_,
                         .part_bytes = options_.part_bytes});
}

bool Node::HasOwnCopy() const { return task_.distributed() && task_.num_ps() == 0; }

LeaseOptions Node::LeaseOfPs() const {
  LeaseOptions lease = options_.lease;
  lease.stall_limit = task_.stall_limit().value_or(lease.stall_limit);
  return lease;
}

ApplyChoice Node::ApplyOfClient() const {
  if (HasOwnCopy()) return ApplyChoice::kAuto;
  return task_.num_ps() > 0 ? ApplyOf(options_) : options_.apply;
}

WireOptions Node::WireOfClient() const { return HasOwnCopy() ? WireOptions() : options_.wire; }

void Node::StartHeartbeats() {
  if (local_store_ || lease_keeper_) return;
  std::vector<Stamp> stamps;
  for (int ps = 0; ps < client_->num_ps(); ++ps) stamps.push_back(client_->MakeStamp(ps, 0));
  lease_keeper_ = std::make_unique<LeaseKeeper>(options_.token, client_->addresses(), std::move(stamps),
                                                client_->progress(), options_.lease.lease / 4);
}

std::string Node::Target() const {
  const absl::StatusOr<std::string> address = task_.cluster().TaskAddress(task_.task());
  return address.ok() ? absl::StrCat("muster://", *address) : "";
}

std::vector<std::string> Node::Devices() const {
  std::vector<std::string> devices = {TaskDevice(task_.task(), {})};
  if (device_.gpu) devices.push_back(TaskDevice(task_.task(), device_));
  return devices;
}

SessionPlace Node::MakeSessionPlace() const {
  SessionPlace place{.task = task_.task(), .device = device_};
  for (const auto& [index, address] : task_.cluster().tasks(kPsJob)) place.ps.push_back({kPsJob, index});
  if (HasOwnCopy()) place.peers = task_.worker_tasks();
  return place;
}

absl::Status Node::Join() {
  if (!ps_)
    return absl::FailedPreconditionError(absl::StrCat(task_.task().ToString(), " isn't a ps and has nothing to serve"));
  return ps_->Join();
}

// A second session would train nothing, as the ps know this task as done, or its end would also end the first one.
absl::Status Node::CheckFirstSession() const {
  const bool open = !session_.expired();
  const bool ended = metrics_.state.value() == static_cast<double>(TrainingState::kEnded);
  if (!open && !ended) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this server has had its session: ", ended ? "training of this job has ended with it" : "it is still open",
      ". One session per server; ",
      task_.distributed() ? "for the next one, start the job's processes, or their servers, again"
                          : "for the next one, make another Server, Replica and Trainer"));
}

absl::StatusOr<SessionEnvironment> Node::MakeSessionEnvironment() {
  if (task_.is_ps() || task_.is_evaluator())
    return absl::FailedPreconditionError(absl::StrCat(
        task_.task().ToString(), " does not train: only the chief and the workers have a session; a program asks ",
        task_.is_ps() ? "task.is_ps() and calls Server::Join" : "task.is_evaluator() and evaluates",
        " before it makes one"));
  if (algorithm_ == nullptr)
    return absl::FailedPreconditionError("create the trainer (such as Asynchronous) before the session");
  if (algorithm_->trains_on_ps() && HasOwnCopy())
    return WrongConfigurationError(
        "this cluster has no ps, and this way to train needs at least one: add a 'ps' job to TF_CONFIG, or --ps_hosts, "
        "or --ps N where srun or torchrun start the tasks, or train by AllReduce, which needs none");
  if (!algorithm_->trains_on_ps() && task_.num_ps() > 0)
    return WrongConfigurationError(absl::StrCat(
        "all-reduce has no use for a ps, and this cluster has ", task_.num_ps(),
        ": leave the 'ps' job out (muster run --ps 0), or train by Synchronous, where the ps hold the model"));
  RETURN_IF_ERROR(CheckFirstSession());
  const auto open = std::make_shared<const int>();
  session_ = open;
  return SessionEnvironment{.client = client_.get(),
                            .algorithm = algorithm_,
                            .loop = &loop_,
                            .files = &PosixFileSystem(),
                            .clock = &RealClock(),
                            .is_chief = task_.is_chief(),
                            .own_store = local_store_ != nullptr,
                            .target = Target(),
                            .place = MakeSessionPlace(),
                            .stop_requested = [this] { return stop_signal_->raised(); },
                            .leaves_on_signal = task_.leaves_on_signal(),
                            .metrics = &metrics_,
                            .on_joined = [this] { StartHeartbeats(); },
                            .tracer = tracer_.get(),
                            .open = open};
}

absl::StatusOr<GroupOptions> Node::MakeGroupOptions() const {
  GroupOptions group{
      .token = options_.token,
      .choice = options_.transport == TransportChoice::kTcp ? CollectiveChoice::kRing : CollectiveChoice::kAuto,
      .stop_requested = [this] { return stop_signal_->raised(); }};
  group.names = {task_.task().ToString()};
  group.addresses = {""};
  if (!task_.distributed()) return group;
  group.names.clear();
  group.addresses.clear();
  group.rank = -1;
  for (const TaskId& worker : task_.worker_tasks()) {
    if (worker == task_.task()) group.rank = static_cast<int>(group.names.size());
    ASSIGN_OR_RETURN(std::string address, task_.cluster().TaskAddress(worker));
    group.names.push_back(worker.ToString());
    group.addresses.push_back(std::move(address));
  }
  if (group.rank < 0 || group.names[0] != task_.chief().ToString())
    return absl::FailedPreconditionError(
        absl::StrCat("all-reduce needs the address of every worker, and this cluster names ", task_.cluster().Summary(),
                     ": give TF_CONFIG's cluster all of them"));
  return group;
}

int Node::num_ps() const { return client_ ? client_->num_ps() : 0; }

absl::StatusOr<std::vector<std::string>> Node::PsStatus() {
  std::vector<std::string> pages;
  for (int ps = 0; ps < num_ps(); ++ps) {
    ASSIGN_OR_RETURN(std::string page, client_->ps_calls().Status(ps));
    pages.push_back(std::move(page));
  }
  return pages;
}

absl::StatusOr<std::unique_ptr<QueueHandle>> Node::OpenQueue(const std::string& name, const QueueOptions& options) {
  const QueueSpec spec{name, options.capacity, options.components};
  RETURN_IF_ERROR(ValidateQueue(spec));
  const std::vector<std::string> ps = task_.ps_addresses();
  const std::string self = task_.task().ToString();
  if (ps.empty() && task_.distributed())
    return WrongConfigurationError(
        absl::StrCat("queue '", name, "' needs a ps that keeps it, and this cluster has none: add a 'ps' job"));
  const int num_ps = ps.empty() ? 1 : static_cast<int>(ps.size());
  const int index = options.ps.value_or(PsOfQueue(name, num_ps));
  if (index < 0 || index >= num_ps)
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", name, "' is to be on ps ", index, "; accepted: 0 to ", num_ps - 1));
  if (ps.empty() && queues_ == nullptr) {
    ASSIGN_OR_RETURN(queues_, LocalQueues::Start(options_.token, self));
  }
  QueueClientOptions client{
      .task = self, .ps = ps.empty() ? self : absl::StrCat("ps:", index), .patience = options_.patience};
  if (stop_signal_) client.stop_requested = [this] { return stop_signal_->raised(); };
  auto handle = std::make_unique<QueueHandle>(
      options_.token, ps.empty() ? queues_->address() : ps[static_cast<size_t>(index)], spec, std::move(client));
  RETURN_IF_ERROR(handle->Open(options.open_timeout));
  return handle;
}

absl::StatusOr<std::shared_ptr<WorkSource>> Node::OpenWorkQueue(const std::string& name,
                                                                const WorkQueueOptions& options) {
  const WorkSpec spec{name, options.rows, options.rows_per_unit, options.epochs};
  RETURN_IF_ERROR(ValidateWork(spec));
  const std::string self = task_.task().ToString();
  if (client_ == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat("work queue '", name, "': ", self, " does not train, and takes no part of the work"));
  if (HasOwnCopy())
    return WrongConfigurationError(absl::StrCat(
        "work queue '", name,
        "' needs ps 0, which divides the work and knows who is alive, and this cluster has no ps: add a 'ps' "
        "job, or give each worker its part by Dataset::Shard"));
  if (tally_ != nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat("work queue '", name, "': ", self, " has opened a work queue; a job has one"));
  tally_ = std::make_shared<WorkTally>();
  client_->work().Share(tally_);
  if (local_store_) return std::make_shared<LocalWork>(work_, tally_, spec);
  WorkQueueClientOptions client{.patience = options_.patience,
                                .stop_requested = [this] { return stop_signal_->raised(); }};
  return std::make_shared<RemoteWork>(options_.token, client_->addresses()[0], spec, tally_, std::move(client));
}

}  // namespace muster
