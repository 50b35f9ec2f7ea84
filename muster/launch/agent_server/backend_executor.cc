#include "muster/launch/agent_server/backend_executor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/write_error.h"
#include "muster/cluster/address.h"
#include "muster/launch/task/task_environment.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

// Replaces the file, so that a reader finds the old text or the new one.
absl::Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string written = absl::StrCat(path, ".new");
  const int fd = open(written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return WriteError(errno, absl::StrCat("cannot write ", written));
  const ssize_t put = Uninterrupted([&] { return write(fd, text.data(), text.size()); });
  const int error = put < 0 ? errno : ENOSPC;
  close(fd);
  if (put != static_cast<ssize_t>(text.size())) return WriteError(error, absl::StrCat("cannot write ", written));
  if (rename(written.c_str(), path.c_str()) != 0) return WriteError(errno, absl::StrCat("cannot replace ", path));
  return absl::OkStatus();
}

constexpr char kLaunch[] = "launch ";
constexpr char kPorts[] = "reserved for ";

struct LaunchValue {
  CommandId launch;
  TaskId task;
  bool ended = false;
  ExitStatus status;
  OutputEnds written;
  std::string devices;
  using Fields =
      FieldList<Field<1, &LaunchValue::launch>, Field<2, &LaunchValue::task>, Field<3, &LaunchValue::ended>,
                Field<4, &LaunchValue::status>, Field<5, &LaunchValue::written>, Field<6, &LaunchValue::devices>>;
};

struct PortsValue {
  TaskId task;
  std::vector<std::string> addresses;
  using Fields = FieldList<Field<1, &PortsValue::task>, Field<2, &PortsValue::addresses>>;
};

// Returns the address with the port of `reserved`, "HOST:PORT".
std::string AtAddress(const std::string& address, const std::string& reserved) {
  int port = 0;
  if (!absl::SimpleAtoi(reserved.substr(reserved.rfind(':') + 1), &port)) return reserved;
  const bool is_ipv6 = address.find(':') != std::string::npos;
  return HostPort{.host = address, .port = static_cast<uint16_t>(port), .is_ipv6 = is_ipv6}.ToString();
}

// Returns whether one of the addresses, "HOST:PORT", has one of the ports.
bool HasOneOf(const std::vector<std::string>& addresses, const std::vector<uint32_t>& ports) {
  return std::any_of(addresses.begin(), addresses.end(), [&ports](const std::string& address) {
    return std::any_of(ports.begin(), ports.end(),
                       [&address](uint32_t port) { return absl::EndsWith(address, absl::StrCat(":", port)); });
  });
}

}  // namespace

BackendExecutor::BackendExecutor(BackendExecutorOptions options, FdLoop& loop,
                                 const std::function<std::unique_ptr<Backend>(BackendEvents& events)>& make)
    : options_(std::move(options)), backend_(make(*this)), later_(loop), exits_(options_.settle, *options_.clock) {}

BackendExecutor::~BackendExecutor() { Close(); }

absl::Status BackendExecutor::Start(SupervisorLink& link, const EarlierLives& earlier) {
  link_ = &link;
  ReadEarlier(earlier);
  return backend_->Start();
}

// A launch without a process and without an end never got as far as that. Up to a read of each pipe may have died with
// the earlier life before it was counted.
void BackendExecutor::ReadEarlier(const EarlierLives& earlier) {
  for (const auto& [name, thing] : earlier.kept) {
    if (absl::StartsWith(name, kLaunch)) {
      LaunchValue value;
      if (!Decode(thing.value, value).ok()) continue;
      Held held{.task = value.task, .written = value.written, .status = value.status, .devices = value.devices};
      const auto process = earlier.processes.find(value.launch);
      if (process != earlier.processes.end()) {
        held.state = State::kRunning;
        held.pid = process->second;
        held.written.unsure = true;
        current_[held.task] = value.launch;
      } else if (value.ended) {
        held.state = State::kEnded;
      } else {
        Forget(value.launch);
        continue;
      }
      launches_[value.launch] = held;
    } else if (absl::StartsWith(name, kPorts)) {
      PortsValue value;
      if (Decode(thing.value, value).ok()) reservations_[value.task] = {.answered = true, .ports = value.addresses};
    }
  }
}

void BackendExecutor::TellEnds() {
  for (const auto& [launch, held] : launches_)
    if (held.state == State::kEnded) link_->SendExited(launch, held.task, held.status, held.written);
}

std::optional<CommandId> BackendExecutor::LaunchOf(const std::string& label) {
  const std::vector<std::string> numbers = absl::StrSplit(label, '.');
  CommandId launch;
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &launch.supervisor) ||
      !absl::SimpleAtoi(numbers[1], &launch.number))
    return std::nullopt;
  return launch;
}

void BackendExecutor::Keep(const CommandId& launch, const Held& held) const {
  if (!options_.keep) return;
  const LaunchValue value{.launch = launch,
                          .task = held.task,
                          .ended = held.state == State::kEnded,
                          .status = held.status,
                          .written = held.written,
                          .devices = held.devices};
  options_.keep({{absl::StrCat(kLaunch, LabelOf(launch)), Encode(value)}});
}

void BackendExecutor::Forget(const CommandId& launch) {
  launches_.erase(launch);
  if (options_.keep) options_.keep({{absl::StrCat(kLaunch, LabelOf(launch)), std::nullopt}});
}

void BackendExecutor::Close() {
  later_.Clear();
  if (!stopped_) backend_->Stop();
  stopped_ = true;
  current_.clear();
  link_ = nullptr;
}

void BackendExecutor::Update() {
  const bool pause = !ending_ && !link_->may_send_output();
  if (stopped_ || pause == paused_) return;
  paused_ = pause;
  backend_->PauseOutput(pause);
}

std::vector<RunningLaunch> BackendExecutor::RunningLaunches() const {
  std::vector<RunningLaunch> running;
  for (const auto& [launch, held] : launches_)
    if (held.state == State::kRunning && held.pid > 0) running.push_back({launch, held.pid, held.devices});
  return running;
}

absl::Time BackendExecutor::deadline() const {
  return stopped_ ? absl::InfiniteFuture() : std::min(backend_->deadline(), exits_.deadline());
}

void BackendExecutor::OnTime() {
  if (stopped_) return;
  backend_->OnTime();
  TellExits();
  if (!unwritten_.empty()) WriteHosts(std::string(unwritten_));
}

void BackendExecutor::Reserve(const CommandId& command, const ReserveEntry& reserve) {
  if (stop_asked_)
    return link_->SendFailed(command, reserve.task, absl::FailedPreconditionError("the agent was told to stop"));
  const auto [found, is_new] = reservations_.try_emplace(reserve.task);
  Reservation& reservation = found->second;
  const bool renew = reservation.answered && HasOneOf(reservation.ports, reserve.without);
  if (reservation.answered && !renew) return AnswerReserve(command, reserve, reservation);
  reservation.answered = false;
  reservation.waiting.emplace_back(command, reserve);
  if (reserve.first_port > 0)
    backend_->TakePortsFrom({.first = static_cast<uint16_t>(reserve.first_port),
                             .count = static_cast<uint16_t>(reserve.last_port - reserve.first_port + 1)});
  const std::vector<uint16_t> ports(reserve.ports.begin(), reserve.ports.end());
  if (renew)
    backend_->Renew(reserve.task, ports);
  else if (is_new)
    backend_->Reserve(reserve.task, ports);
}

void BackendExecutor::AnswerReserve(const CommandId& command, const ReserveEntry& reserve,
                                    const Reservation& reservation) {
  if (reserve.ports.size() > reservation.ports.size())
    return link_->SendFailed(
        command, reserve.task,
        absl::FailedPreconditionError(absl::StrCat("the task has ", reservation.ports.size(),
                                                   " reserved ports and can't get more; end the run and start it with ",
                                                   reserve.ports.size())));
  for (size_t i = 0; i < reserve.ports.size(); ++i)
    if (reserve.ports[i] != 0 && !absl::EndsWith(reservation.ports[i], absl::StrCat(":", reserve.ports[i])))
      return link_->SendFailed(
          command, reserve.task,
          absl::InvalidArgumentError(absl::StrCat("the task has other ports than ", reserve.ports[i])));
  std::vector<std::string> addresses;
  for (size_t i = 0; i < reserve.ports.size(); ++i)
    addresses.push_back(AtAddress(reserve.address.empty() ? options_.address : reserve.address, reservation.ports[i]));
  link_->SendReserved(command, addresses);
}

void BackendExecutor::OnReserved(const TaskId& task, const std::vector<std::string>& addresses) {
  Reservation& reservation = reservations_.at(task);
  reservation.answered = true;
  reservation.ports = addresses;
  if (options_.keep)
    options_.keep({{absl::StrCat(kPorts, task.ToString()), Encode(PortsValue{.task = task, .addresses = addresses})}});
  for (const auto& [command, reserve] : std::exchange(reservation.waiting, {}))
    AnswerReserve(command, reserve, reservation);
}

void BackendExecutor::OnNotReserved(const TaskId& task, const absl::Status& why) {
  const Reservation reservation = std::move(reservations_.extract(task).mapped());
  for (const auto& [command, reserve] : reservation.waiting) link_->SendFailed(command, task, why);
}

void BackendExecutor::Launch(const CommandId& launch, const LaunchEntry& process) {
  if (stop_asked_ || ending_)
    return link_->SendFailed(launch, process.task, absl::FailedPreconditionError("the agent ends its tasks"));
  if (const auto running = current_.find(process.task); running != current_.end())
    return link_->SendFailed(launch, process.task,
                             absl::AlreadyExistsError(absl::StrCat(process.task.ToString(), " runs already, by launch ",
                                                                   running->second.ToString())));
  ProcessSpec spec = process.ToSpec();
  if (const absl::Status given = GiveDevices(options_.devices, spec.environment); !given.ok())
    return link_->SendFailed(launch, process.task, given);
  launches_[launch] = {.task = process.task};
  for (const auto& [name, value] : spec.environment)
    if (name == kDevicesVariable) launches_[launch].devices = value;
  current_[process.task] = launch;
  Keep(launch, launches_[launch]);
  spec.label = LabelOf(launch);
  if (!options_.muster.empty() && !spec.arguments.empty() && spec.arguments[0] == "muster")
    spec.arguments[0] = options_.muster;
  // Before the supervisor's own, which win.
  spec.environment.insert(spec.environment.begin(),
                          {{kClusterFileVariable, options_.cluster_file}, {kHeardFileVariable, options_.heard_file}});
  backend_->Launch(spec);
}

void BackendExecutor::OnStarted(const TaskId& task, const LocalProcess& process) {
  const CommandId launch = current_.at(task);
  Held& held = launches_.at(launch);
  held.state = State::kRunning;
  held.begun = options_.clock->Now();
  held.pid = process.pid;
  link_->SendStarted(launch, task, process.pid);
}

void BackendExecutor::OnNotStarted(const TaskId& task, const absl::Status& why) {
  const CommandId launch = current_.extract(task).mapped();
  Forget(launch);
  link_->SendFailed(launch, task, why);
  StopIfAllHaveEnded();
}

void BackendExecutor::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  if (ending_) return;
  const CommandId launch = current_.at(task);
  Held& held = launches_.at(launch);
  uint64_t& position = held.written.of(stream);
  const uint64_t before = position;
  position += bytes.size();
  Keep(launch, held);
  link_->SendOutput(launch, stream, before, bytes);
  Update();
}

void BackendExecutor::OnExit(const TaskId& task, const ExitStatus& status) {
  const CommandId launch = current_.at(task);
  Held& held = launches_.at(launch);
  held.state = State::kEnded;
  held.pid = 0;
  held.status = status;
  Keep(launch, held);
  exits_.OnExit(launch, status, held.begun);
  TellExits();
}

void BackendExecutor::TellExits() {
  for (const ExitsAtSignal::Exit& exit : exits_.TakeDue()) {
    Held& held = launches_.at(exit.launch);
    held.status.at_signal = exit.at_signal;
    if (exit.at_signal) Keep(exit.launch, held);
    current_.erase(held.task);
    link_->SendExited(exit.launch, held.task, held.status, held.written);
  }
  StopIfAllHaveEnded();
}

void BackendExecutor::End(const CommandId& launch, EndMode mode) {
  const auto found = launches_.find(launch);
  if (!stopped_ && found != launches_.end() && found->second.state != State::kEnded)
    backend_->End(found->second.task, mode);
}

void BackendExecutor::WriteHosts(const std::string& file) {
  const bool was_written = unwritten_.empty();
  const absl::Status written = ReplaceFile(options_.cluster_file, file);
  unwritten_ = written.ok() ? "" : file;
  if (written.ok() == was_written) return;
  link_->SendNote(written.ok() ? "tasks have the present addresses again"
                               : absl::StrCat("tasks have old addresses until this works: ", written.message()));
}

void BackendExecutor::Input(const CommandId& launch, std::string_view bytes) {
  const auto found = launches_.find(launch);
  if (!stopped_ && found != launches_.end() && found->second.state != State::kEnded)
    backend_->Input(found->second.task, bytes);
}

void BackendExecutor::EndAll(EndMode mode) {
  ending_ = true;
  Update();
  // A ps that is asked to end tells everybody that training has ended. But only this host may be out of reach, and
  // training goes on elsewhere; if it doesn't, the last checkpoint still needs the ps.
  for (const auto& [task, launch] : std::map(current_))
    if (mode == EndMode::kAtOnce || task.job != kPsJob) End(launch, mode);
}

void BackendExecutor::Stop() {
  stop_asked_ = true;
  if (stopped_) return link_->SendStopped(0);
  for (const auto& [task, launch] : std::map(current_)) End(launch, EndMode::kAtOnce);
  StopIfAllHaveEnded();
}

// Later, since the backend may be in the middle of telling of the last end.
void BackendExecutor::StopIfAllHaveEnded() {
  if (!stop_asked_ || !current_.empty() || std::exchange(stop_scheduled_, true)) return;
  later_.Add([this] { StopBackend(); });
}

void BackendExecutor::StopBackend() {
  const int strays = backend_->Stop();
  stopped_ = true;
  for (const auto& [task, reservation] : std::exchange(reservations_, {}))
    for (const auto& [command, reserve] : reservation.waiting)
      link_->SendFailed(command, task, absl::FailedPreconditionError("the agent was told to stop"));
  link_->SendStopped(static_cast<uint64_t>(strays));
}

std::vector<HeldLaunch> BackendExecutor::Launches() const {
  std::vector<HeldLaunch> held;
  for (const auto& [launch, one] : launches_)
    if (one.state != State::kBeingStarted) held.push_back({.launch = launch, .task = one.task, .pid = one.pid});
  return held;
}

}  // namespace muster
