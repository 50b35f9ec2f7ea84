#include "muster/launch/backends/hosts/hosts_backend.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/launch/hosts/placement.h"

namespace muster {
namespace {

// How long Stop waits for hosts that are heard: a process that waits for a broken disk can't be killed.
constexpr absl::Duration kStopPatience = absl::Seconds(30);

HostAgentOptions OptionsOfHosts(const BackendOptions& options) {
  HostAgentOptions of_hosts{
      .job = options.run_id, .supervisor = options.plan.supervisor, .limits = {}, .note = options.note};
  of_hosts.limits.grace = options.plan.grace;
  of_hosts.limits.signalled = options.plan.signalled;
  of_hosts.ports = options.plan.ports;
  if (!of_hosts.note) of_hosts.note = [](const std::string&) {};
  return of_hosts;
}

}  // namespace

HostsBackend::HostsBackend(const BackendOptions& options, std::unique_ptr<Engine> engine, FdLoop& loop,
                           BackendEvents& events)
    : options_(options),
      host_options_(OptionsOfHosts(options)),
      loop_(loop),
      events_(events),
      placement_(options.plan.placement),
      optional_(options.plan.optional_hosts),
      engine_(std::move(engine)),
      local_(options, loop, events),
      waits_([this](const std::string& line) { Note(line); }) {
  MUSTER_CHECK(!options.plan.hosts.empty());
}

HostsBackend::~HostsBackend() = default;

absl::Status HostsBackend::Start() {
  RETURN_IF_ERROR(CheckAgentLimits(host_options_.limits));
  RETURN_IF_ERROR(engine_->Start(*this));
  later_.emplace(loop_);
  // The supervisor before has found that they reach each other.
  if (options_.plan.supervisor > 1) usable_ = absl::OkStatus();
  const size_t hosts = options_.plan.hosts.size();
  Note(absl::StrCat("reaching ", hosts, hosts == 1 ? " host" : " hosts"));
  if (!usable_.has_value()) waits_.Begin(options_.clock->Now());
  for (const Host& host : options_.plan.hosts)
    agents_[host.name] = std::make_unique<HostAgent>(host, host_options_, *engine_, loop_, *options_.clock,
                                                     static_cast<BackendEvents&>(*this), [this] { OnHostChanged(); });
  // The supervisor before has left it out.
  for (const std::string& host : optional_.names())
    if (const auto is_there = [&](const auto& placed) { return placed.second == host; };
        std::none_of(placement_.begin(), placement_.end(), is_there))
      LeaveOut(host, "it was left out before");
  return absl::OkStatus();
}

int HostsBackend::Stop() {
  if (!later_.has_value()) return 0;
  later_.reset();
  waiting_.clear();
  int strays = local_.Stop();
  local_started_ = false;
  for (const auto& [name, agent] : agents_) agent->Stop();
  const absl::Time until = options_.clock->Now() + kStopPatience;
  const auto is_awaited = [](const auto& host) {
    const HostAgent& agent = *host.second;
    return agent.state() == HostAgent::State::kReady && !agent.stopped() && !agent.suspect();
  };
  waits_.Begin(options_.clock->Now());
  while (std::any_of(agents_.begin(), agents_.end(), is_awaited) && options_.clock->Now() < until) {
    loop_.RunOnce(std::min(deadline(), until));
    OnTime();
    waits_.OnTime(options_.clock->Now(), [&] {
      std::vector<AwaitedHost> awaited;
      for (const auto& host : agents_)
        if (is_awaited(host)) awaited.push_back({host.first, "what runs there hasn't ended yet"});
      return awaited;
    });
  }
  waits_.End();
  check_.reset();
  usable_.reset();
  for (const auto& [name, agent] : agents_) {
    strays += agent->strays();
    if (agent->state() == HostAgent::State::kReady && !agent->stopped())
      Note(absl::StrCat(name, " can't be told that the run has ended; what runs there ends within ",
                        absl::FormatDuration(options_.plan.grace + host_options_.limits.ending)));
  }
  agents_.clear();
  return strays;
}

HostAgent* HostsBackend::HostOf(const TaskId& task) const {
  const auto placed = placement_.find(task);
  return placed == placement_.end() ? nullptr : agents_.at(placed->second).get();
}

void HostsBackend::Reserve(const TaskId& task, const std::vector<uint16_t>& ports) {
  MUSTER_CHECK(later_.has_value());
  waiting_.emplace_back(task, ports);
  if (usable_.has_value()) later_->Add([this] { ReserveWaiting(); });
}

void HostsBackend::Renew(const TaskId& task, const std::vector<uint16_t>& ports) {
  HostAgent* const host = HostOf(task);
  if (host == nullptr) return local_.Renew(task, ports);
  host->Reserve(task, ports, /*renew=*/true);
}

void HostsBackend::OnHostChanged() {
  if (!later_.has_value() || check_.has_value() || usable_.has_value()) return;
  std::vector<HostAgent*> ready;
  bool all_ready = true;
  for (const Host& host : options_.plan.hosts) {
    HostAgent* const agent = agents_.at(host.name).get();
    if (agent->state() == HostAgent::State::kGone && optional_.MayLeaveOut(host.name))
      LeaveOut(host.name, std::string(agent->why_gone().message()));
    if (optional_.IsLeftOut(host.name)) continue;
    if (agent->state() == HostAgent::State::kConnecting) return;
    if (agent->state() == HostAgent::State::kReady)
      ready.push_back(agent);
    else
      all_ready = false;
  }
  if (!all_ready) return OnChecked(WhyNotAllHosts());
  if (ready.size() == 1) return OnChecked(absl::OkStatus());
  waits_.Begin(options_.clock->Now());
  check_.emplace(ready, optional_.names(), options_.run_id,
                 [this](const absl::Status& checked) { OnChecked(checked); });
}

bool HostsBackend::AwaitsOnlyOptional() const {
  if (!later_.has_value() || usable_.has_value() || optional_.names().empty()) return false;
  if (check_.has_value()) return check_->AwaitsOnlyOptional();
  return std::all_of(agents_.begin(), agents_.end(), [this](const auto& host) {
    return host.second->state() != HostAgent::State::kConnecting || optional_.names().contains(host.first);
  });
}

void HostsBackend::MindOptionalHosts() {
  if (!optional_.IsPatienceOver(AwaitsOnlyOptional(), options_.clock->Now())) return;
  const std::string why = absl::StrCat("nothing was heard of it for ", absl::FormatDuration(OptionalHosts::kPatience),
                                       " after the others were there");
  if (check_.has_value()) return check_->LeaveOutAwaited(why);
  for (const auto& [name, agent] : agents_)
    if (agent->state() == HostAgent::State::kConnecting && optional_.MayLeaveOut(name)) LeaveOut(name, why);
  OnHostChanged();
}

// What its agent has is ended, also where it can be reached only later.
std::vector<TaskId> HostsBackend::LeaveOut(const std::string& host, const std::string& why) {
  optional_.LeaveOut(host, why);
  // The agent may be what calls.
  later_->Add([this, host] { agents_.at(host)->Stop(); });
  std::vector<TaskId> tasks;
  for (const auto& [task, wish] : elsewhere_)
    if (const auto placed = placement_.find(task); placed != placement_.end() && placed->second == host)
      tasks.push_back(task);
  return tasks;
}

absl::Status HostsBackend::PlaceAgain(const TaskId& task) {
  const std::string from = placement_.at(task), why = optional_.WhyNotUsed(from);
  const auto wish = elsewhere_.find(task);
  if (wish == elsewhere_.end()) return absl::UnavailableError(why);
  const std::string to = PlaceElsewhere(task, wish->second, options_.clock->Now()).value_or(wish->second.last_resort);
  if (to.empty()) return absl::UnavailableError(absl::StrCat(why, "; no other host has room"));
  placement_[task] = to;
  events_.OnPlaced(task, to, why);
  return absl::OkStatus();
}

void HostsBackend::OnChecked(const absl::Status& checked) {
  if (check_.has_value())
    for (const auto& [host, why] : check_->left_out()) LeaveOut(host, why);
  usable_ = checked;
  waits_.End();
  // The check may be what calls.
  if (later_.has_value()) later_->Add([this] { ReserveWaiting(); });
}

void HostsBackend::ReserveWaiting() {
  for (const auto& [task, ports] : std::exchange(waiting_, {})) {
    absl::Status usable = *usable_;
    const auto placed = placement_.find(task);
    if (usable.ok() && placed != placement_.end() && optional_.IsLeftOut(placed->second)) usable = PlaceAgain(task);
    HostAgent* const host = HostOf(task);
    if (!usable.ok()) {
      events_.OnNotReserved(task, usable);
    } else if (host == nullptr) {
      ReserveHere(task, ports);
    } else {
      host->Reserve(task, ports);
    }
  }
}

absl::Status HostsBackend::StartHere() {
  if (local_started_) return absl::OkStatus();
  RETURN_IF_ERROR(local_.Start());
  local_started_ = true;
  return absl::OkStatus();
}

void HostsBackend::ReserveHere(const TaskId& task, const std::vector<uint16_t>& ports) {
  if (const absl::Status started = StartHere(); !started.ok()) return events_.OnNotReserved(task, started);
  local_.Reserve(task, ports);
}

absl::Status HostsBackend::WhyNotAllHosts() const {
  std::vector<std::string> lines;
  for (const Host& host : options_.plan.hosts) {
    const HostAgent& agent = *agents_.at(host.name);
    if (agent.state() != HostAgent::State::kGone) continue;
    const std::string why(agent.why_gone().message());
    if (std::find(lines.begin(), lines.end(), why) == lines.end()) lines.push_back(why);
  }
  if (lines.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrJoin(lines, "\n"));
}

std::vector<AwaitedHost> HostsBackend::AwaitedAtStart() const {
  std::vector<AwaitedHost> awaited;
  if (check_.has_value()) {
    for (const std::string& name : check_->awaited())
      awaited.push_back({name, "it is to find out whether it reaches the other hosts"});
    return awaited;
  }
  for (const auto& [name, agent] : agents_) {
    if (agent->state() != HostAgent::State::kConnecting || optional_.IsLeftOut(name)) continue;
    const std::string words = engine_->LastWords(name);
    awaited.push_back({name, words.empty() ? "no agent has answered there yet" : words});
  }
  return awaited;
}

void HostsBackend::Launch(const ProcessSpec& process) {
  HostAgent* const host = HostOf(process.task);
  if (host != nullptr) return host->Launch(process);
  const absl::Status started = StartHere();
  if (started.ok()) return local_.Launch(process);
  later_->Add([this, task = process.task, started] { events_.OnNotStarted(task, started); });
}

void HostsBackend::TakeOver(const LeftProcess& process) {
  HostAgent* const host = HostOf(process.task);
  MUSTER_CHECK(host != nullptr);
  host->TakeOver(process);
}

void HostsBackend::End(const TaskId& task, EndMode mode) {
  HostAgent* const host = HostOf(task);
  if (host == nullptr) return local_.End(task, mode);
  host->End(task, mode);
}

void HostsBackend::PauseOutput(bool paused) {
  local_.PauseOutput(paused);
  for (const auto& [name, agent] : agents_) agent->PauseOutput(paused);
}

void HostsBackend::Input(const TaskId& task, std::string_view bytes) {
  HostAgent* const host = HostOf(task);
  if (host == nullptr) return local_.Input(task, bytes);
  host->Input(task, bytes);
}

std::optional<std::string> HostsBackend::PlaceElsewhere(const TaskId& task, const MoveWish& wish,
                                                        absl::Time since) const {
  const auto gpus = wish.gpus.find(task);
  MoveRequest request{.task = {.task = task, .gpus = gpus == wish.gpus.end() ? 0 : gpus->second},
                      .hosts = {},
                      .present = {},
                      .gpus = wish.gpus};
  for (const Host& host : options_.plan.hosts) {
    const HostAgent& agent = *agents_.at(host.name);
    const bool is_wished = std::find(wish.hosts.begin(), wish.hosts.end(), host.name) != wish.hosts.end();
    const bool is_heard = agent.state() == HostAgent::State::kReady && !agent.suspect() && agent.heard_since() <= since;
    if (is_wished && is_heard && !optional_.IsLeftOut(host.name) && host.name != placement_.at(task))
      request.hosts.push_back(host);
  }
  for (const TaskId& other : wish.others)
    if (const auto placed = placement_.find(other); placed != placement_.end()) request.present[other] = placed->second;
  return muster::PlaceElsewhere(request);
}

std::string HostsBackend::Move(const TaskId& task, const MoveWish& wish) {
  HostAgent* const from = HostOf(task);
  if (from == nullptr || !from->may_leave(task)) return "";
  const std::optional<std::string> host = PlaceElsewhere(task, wish, options_.clock->Now());
  if (!host.has_value()) return "";
  from->Forget(task);
  placement_[task] = *host;
  return *host;
}

// When the supervisor's own network was away, hosts come back one after the other: the first is no place for the tasks
// of the others.
bool HostsBackend::CanGiveUp(const TaskId& task, const MoveWish& wish) const {
  const HostAgent* const host = HostOf(task);
  if (host == nullptr || !host->suspect()) return false;
  return PlaceElsewhere(task, wish, options_.clock->Now() - host_options_.out_of_reach_after).has_value();
}

void HostsBackend::GiveUp(const TaskId& task) { HostOf(task)->GiveUp(task); }

std::string HostsBackend::UnheardHost(const TaskId& task) const {
  const HostAgent* const host = HostOf(task);
  if (host == nullptr || host->state() != HostAgent::State::kReady || !host->suspect()) return "";
  return absl::StrCat(host->name(), ", which isn't heard and counts as lost ",
                      absl::FormatDuration(host_options_.limits.lost()), " after it was heard last");
}

void HostsBackend::WriteHosts(const std::string& file) {
  for (const auto& [name, agent] : agents_) agent->WriteHosts(file);
}

absl::Time HostsBackend::deadline() const {
  absl::Time first = std::min({local_.deadline(), engine_->deadline(), optional_.deadline(), waits_.deadline()});
  for (const auto& [name, agent] : agents_) first = std::min(first, agent->deadline());
  return first;
}

void HostsBackend::OnTime() {
  local_.OnTime();
  engine_->OnTime();
  for (const auto& [name, agent] : agents_) agent->OnTime();
  if (later_.has_value()) waits_.OnTime(options_.clock->Now(), [this] { return AwaitedAtStart(); });
  MindOptionalHosts();
}

void HostsBackend::OnStream(const std::string& host, AgentStream stream) {
  const auto agent = agents_.find(host);
  if (agent != agents_.end()) agent->second->OnStream(std::move(stream));
}

void HostsBackend::OnNoStream(const std::string& host, const absl::Status& why) {
  const auto agent = agents_.find(host);
  if (agent != agents_.end()) agent->second->OnNoStream(why);
}

BackendEvents& HostsBackend::OwnerOf(const TaskId& task) {
  if (check_.has_value() && ReachCheck::Owns(task)) return *check_;
  return events_;
}
void HostsBackend::OnReserved(const TaskId& task, const std::vector<std::string>& addresses) {
  OwnerOf(task).OnReserved(task, addresses);
}
void HostsBackend::OnNotReserved(const TaskId& task, const absl::Status& why) {
  OwnerOf(task).OnNotReserved(task, why);
}
void HostsBackend::OnStarted(const TaskId& task, const LocalProcess& process) {
  OwnerOf(task).OnStarted(task, process);
}
void HostsBackend::OnNotStarted(const TaskId& task, const absl::Status& why) { OwnerOf(task).OnNotStarted(task, why); }
void HostsBackend::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  OwnerOf(task).OnOutput(task, stream, bytes);
}
void HostsBackend::OnExit(const TaskId& task, const ExitStatus& status) { OwnerOf(task).OnExit(task, status); }

void HostsBackend::Note(const std::string& line) const {
  if (options_.note) options_.note(line);
}

}  // namespace muster
