#include "muster/launch/backends/hosts/host_agent.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/cluster/address.h"
#include "muster/launch/system/random_hex.h"

namespace muster {
namespace {

// Between two tries to reach a host whose stream has broken.
constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
// Within this an agent answers once ssh has started it.
constexpr absl::Duration kAnswerPatience = absl::Seconds(30);
// A stream over which nothing comes for that much longer than a host may be silent is given up: the network may have
// forgotten it, and ssh notices that later than the host counts as lost.
constexpr absl::Duration kSilentStream = absl::Seconds(2);
// A stream that takes nothing isn't looked at more often.
constexpr absl::Duration kShortestWait = absl::Milliseconds(20);
// So many connections in a row, over which nothing has come, are no broken network any more: an agent that takes a
// command for a mistake closes the stream.
constexpr int kFutile = 30;
// From killing tasks to their ends, at most.
constexpr absl::Duration kEndingMargin = absl::Seconds(2);
// Between two calls of BackendEvents::OnOutOfReach.
constexpr absl::Duration kOutOfReachPeriod = absl::Seconds(1);
// How old the supervisor's number may be: half of AgentLimits::number_age.
constexpr absl::Duration kNumberPeriod = absl::Milliseconds(500);

}  // namespace

HostAgent::HostAgent(Host host, const HostAgentOptions& options, Engine& engine, FdLoop& loop, const Clock& clock,
                     BackendEvents& events, std::function<void()> changed)
    : host_(std::move(host)),
      options_(options),
      engine_(engine),
      loop_(loop),
      clock_(clock),
      events_(events),
      changed_(std::move(changed)),
      supervisor_id_(RandomHex(kIdBytes / 2)),
      later_(loop),
      pause_(kFirstPause, kLongestPause),
      redial_at_(absl::InfiniteFuture()),
      answer_by_(absl::InfiniteFuture()) {
  MakeLink();
  Connect();
}

void HostAgent::MakeLink() {
  const AgentLinkOptions options{.job = options_.job,
                                 .supervisor = options_.supervisor,
                                 .supervisor_id = supervisor_id_,
                                 .progress = {},
                                 .limits = options_.limits};
  link_.emplace(options, *this, clock_.Now());
  life_ = 0;
}

void HostAgent::Connect() {
  redial_at_ = absl::InfiniteFuture();
  if (!std::exchange(connecting_, true)) engine_.Connect(name());
}

HostAgent::~HostAgent() = default;

void HostAgent::OnStream(AgentStream stream) {
  connecting_ = false;
  if (state_ == State::kGone) return;
  answer_by_ = std::min(answer_by_, clock_.Now() + kAnswerPatience);
  // A new stream may be as silent as the one before.
  if (link_->suspect()) hang_up_at_ = clock_.Now() + options_.limits.suspect + kSilentStream;
  stream_ = std::move(stream);
  if (seen_at_.empty()) seen_at_ = stream_.address;
  StreamOwner owner;
  owner.passed = [this](const std::string& hellos) {
    link_->OnNumberRead(clock_.Now());
    link_->OnStream(clock_.Now(), stream_.key.empty() ? std::nullopt : std::optional(FrameMac(stream_.key, hellos)));
  };
  owner.take = [this](ByteSpan bytes) {
    tasks_end_by_ = clock_.Now() + options_.limits.lost();
    link_->OnNumberRead(clock_.Now());
    const absl::Status taken = link_->OnBytes(clock_.Now(), bytes);
    SendQueued();
    return taken;
  };
  owner.next = [this] { return link_->NextFrame(clock_.Now()); };
  owner.ended = [this](const absl::Status& why) { OnConnectionEnd(why); };
  HandshakeIdentity identity;
  identity.token.secret = stream_.key.empty() ? TokenOfLocalStream(options_.job) : stream_.key;
  connection_ = std::make_unique<AgentConnection>(loop_, stream_.in_fd, stream_.out_fd,
                                                  std::make_unique<ClientHandshake>(std::move(identity), RandomNonce()),
                                                  std::move(owner), std::exchange(stream_.read_already, ""));
}

void HostAgent::OnNoStream(const absl::Status& why) {
  connecting_ = false;
  if (state_ == State::kGone) return;
  const bool for_ever = absl::IsFailedPrecondition(why);
  if (!left_.empty() && !for_ever && clock_.Now() < tasks_end_by_) return Redial();  // they may run
  if (for_ever || state_ == State::kConnecting) return BecomeGone(why, for_ever || clock_.Now() >= tasks_end_by_);
  last_try_ = absl::StrCat(" (", std::string(why.message()), ")");
  Redial();
}

void HostAgent::OnConnectionEnd(const absl::Status& why) {
  hang_up_at_ = absl::InfiniteFuture();
  const std::string words = stream_.last_words();
  connection_.reset();
  stream_ = {};
  link_->OnStreamEnd();
  if (stopped_ || state_ == State::kGone) return;
  if (link_->replaced()) {
    tasks_end_by_ = absl::InfinitePast();
    return BecomeGone(
        absl::UnavailableError(absl::StrCat("the agent on ", name(), " has died, and its tasks with it")));
  }
  if (const auto& refused = link_->refused(); refused.has_value()) {
    if (refused->reason == Refusal::kEnding)
      tasks_end_by_ = clock_.Now() + std::max(options_.limits.signalled, options_.limits.ending) + kEndingMargin;
    // The next agent starts once the tasks of this one have ended.
    if (state_ == State::kConnecting && refused->reason == Refusal::kEnding) return Redial();
    return BecomeGone(absl::UnavailableError(absl::StrCat(
        "the agent on ", name(), " takes no commands: ",
        refused->reason == Refusal::kEnding
            ? "it hasn't heard from here for too long and ends its tasks"
            : "it obeys another one; is the host in the list under two names, or is its /tmp that of another host?")));
  }
  if (state_ == State::kReady && BreaksInVain())
    return BecomeGone(absl::UnavailableError(
        absl::StrCat("the agent on ", name(),
                     " ends every connection before it has done anything: ", std::string(why.message()), words)));
  if (state_ == State::kConnecting)
    return BecomeGone(absl::UnavailableError(
        absl::StrCat(name(), ": its agent has ended before it answered: ", std::string(why.message()), words)));
  Redial();
}

void HostAgent::Redial() { redial_at_ = clock_.Now() + pause_.Next(); }

bool HostAgent::BreaksInVain() {
  const uint64_t seen = std::exchange(seen_, link_->progress().seen);
  if (seen != seen_) {
    futile_ = 0;
    pause_.Reset();
  }
  return ++futile_ > kFutile;
}

absl::Time HostAgent::deadline() const {
  if (state_ == State::kGone) return absl::InfiniteFuture();
  // Before there is a stream, the engine's patience counts.
  const absl::Time of_link = std::max(link_->deadline(), looked_ + kShortestWait);
  const absl::Time first =
      std::min({redial_at_, hang_up_at_, out_of_reach_at_, state_ == State::kReady ? of_link : answer_by_});
  return connection_ == nullptr ? first : std::min(first, clock_.Now() + kNumberPeriod);
}

void HostAgent::OnTime() {
  if (state_ == State::kGone) return;
  const absl::Time now = clock_.Now();
  looked_ = now;
  // Nobody takes its number: a run in the foreground has one supervisor, and in a job the next one begins when the one
  // before is dead, and holds the run's lock.
  link_->OnNumberRead(now);
  if (state_ == State::kReady) link_->OnTime(now);
  if (link_->lost())
    return BecomeGone(absl::UnavailableError(absl::StrCat(name(), " is lost: nothing was heard of it for ",
                                                          absl::FormatDuration(options_.limits.lost()),
                                                          ", so its tasks count as ended", last_try_)),
                      /*lost=*/true);
  if (now >= out_of_reach_at_) {
    out_of_reach_at_ = now + kOutOfReachPeriod;
    for (const auto& [command, asked] : std::map(asked_))
      if (asked.launch && asked.started && !stopping_) events_.OnOutOfReach(asked.task);
  }
  if (state_ == State::kConnecting && now >= answer_by_)
    return BecomeGone(absl::UnavailableError(
        absl::StrCat(name(), ": its agent has said nothing for ", absl::FormatDuration(kAnswerPatience))));
  if (now >= redial_at_) Connect();
  if (now >= hang_up_at_ && connection_ != nullptr) OnConnectionEnd(absl::UnavailableError("nothing comes over it"));
  SendQueued();
  if (connection_ == nullptr) return;
  connection_->Write();
  if (connection_->passed() && !link_->has_stream()) OnConnectionEnd(absl::InternalError("the link has given it up"));
}

void HostAgent::OnAttached(const std::string&, uint64_t life, const std::vector<HeldLaunch>& launches) {
  last_try_.clear();
  const auto tasks = std::count_if(launches.begin(), launches.end(), [](const auto& held) { return held.pid > 0; });
  if (life > std::exchange(life_, life) && state_ == State::kReady && !stopping_)
    options_.note(absl::StrCat("the agent on ", name(), " was killed; another goes on with its ", tasks,
                               tasks == 1 ? " task" : " tasks"));
  if (state_ != State::kConnecting) return;
  heard_since_ = clock_.Now();
  lost_ = false;
  was_ready_ = true;
  state_ = State::kReady;
  FindLeft(launches);
  later_.Add(changed_);
}

void HostAgent::OnSuspect(bool suspect) {
  hang_up_at_ = suspect ? clock_.Now() + kSilentStream : absl::InfiniteFuture();
  const absl::Duration more = options_.out_of_reach_after - options_.limits.suspect;
  out_of_reach_at_ = suspect ? clock_.Now() + more : absl::InfiniteFuture();
  if (!suspect) heard_since_ = clock_.Now();
  if (!suspect) EndGivenUp();
  if (stopping_) return;
  options_.note(suspect ? absl::StrCat(name(), " hasn't been heard for ", absl::FormatDuration(options_.limits.suspect),
                                       "; its tasks may go on (lost after ",
                                       absl::FormatDuration(options_.limits.lost()), ")")
                        : absl::StrCat(name(), " is heard again"));
}

bool HostAgent::may_leave(const TaskId& task) const {
  const auto is_given_up = [&](const auto& launch) { return launch.second == task; };
  return (lost_ && state_ != State::kReady) || std::any_of(given_up_.begin(), given_up_.end(), is_given_up);
}

void HostAgent::GiveUp(const TaskId& task) {
  const std::optional<CommandId> launch = LaunchOf(task);
  if (!launch.has_value() || !asked_.at(*launch).started || !link_->suspect()) return;
  asked_.erase(*launch);
  given_up_[*launch] = task;
}

void HostAgent::EndGivenUp() {
  for (const auto& [launch, task] : given_up_)
    Queue({.send = [this, launch = launch] { link_->End(launch, EndMode::kAtOnce).IgnoreError(); },
           .asked = std::nullopt});
}

void HostAgent::WriteHosts(const std::string& file) {
  hosts_file_ = file;
  if (state_ == State::kGone) return;
  Queue({.send = [this, file] { link_->WriteHosts(file).IgnoreError(); }, .asked = std::nullopt});
}

void HostAgent::Queue(QueuedForHost command) {
  queue_.push_back(std::move(command));
  SendQueued();
  if (connection_ != nullptr) connection_->Write();
}

void HostAgent::SendQueued() {
  while (!queue_.empty() && link_->may_send()) {
    const QueuedForHost command = std::move(queue_.front());
    queue_.pop_front();
    command.send();
  }
}

void HostAgent::Reserve(const TaskId& task, const std::vector<uint16_t>& ports, bool renew) {
  if (state_ == State::kGone && was_ready_)
    return later_.Add([this, task, ports, renew] {
      if (stopping_) return;
      if (state_ == State::kGone) GetNewAgent();
      Reserve(task, ports, renew);
    });
  if (state_ == State::kGone) return later_.Add([this, task] { events_.OnNotReserved(task, why_gone_); });
  if (ports.empty()) return later_.Add([this, task] { events_.OnReserved(task, {}); });
  AskedOfHost asked{.task = task, .ports = ports.size()};
  if (renew && reserved_.contains(task)) asked.without = std::move(reserved_.extract(task).mapped());
  Queue({.send = [this, asked, ports] { SendReserve(asked, ports); }, .asked = asked});
}

void HostAgent::SendReserve(const AskedOfHost& asked, const std::vector<uint16_t>& ports) {
  const std::string& address = host_.address.empty() ? seen_at_ : host_.address;
  ReserveEntry reserve{.task = asked.task,
                       .ports = {ports.begin(), ports.end()},
                       .address = address,
                       .without = {asked.without.begin(), asked.without.end()}};
  if (options_.ports.has_value()) {
    reserve.first_port = options_.ports->first;
    reserve.last_port = options_.ports->first + options_.ports->count - 1;
  }
  const auto command = link_->Reserve(reserve);
  if (command.ok()) {
    asked_[*command] = asked;
  } else if (!asked.renewed) {
    later_.Add([this, task = asked.task, why = command.status()] { events_.OnNotReserved(task, why); });
  }
}

void HostAgent::Launch(const ProcessSpec& process) {
  // Later, as what was asked of the agent before is answered first.
  if (state_ == State::kGone)
    return later_.Add([this, process] {
      if (stopping_) return;
      if (state_ == State::kGone) GetNewAgent();
      Launch(process);
    });
  Queue({.send = [this, process] { SendLaunch(process); }, .asked = AskedOfHost{.task = process.task, .launch = true}});
}

void HostAgent::GetNewAgent() {
  state_ = State::kConnecting;
  why_gone_ = absl::OkStatus();
  answer_by_ = absl::InfiniteFuture();
  paused_ = false;  // PauseOutput comes again
  pause_.Reset();
  MakeLink();
  Connect();
  if (!hosts_file_.empty()) WriteHosts(hosts_file_);
  ReserveAgain();
}

void HostAgent::ReserveAgain() {
  for (const auto& [task, ports] : reserved_) {
    const AskedOfHost asked{.task = task, .renewed = true};
    Queue({.send = [this, asked, ports = ports] { SendReserve(asked, ports); }, .asked = asked});
  }
}

void HostAgent::TakeOver(const LeftProcess& process) {
  was_ready_ = true;  // for the supervisor before
  tasks_end_by_ = clock_.Now() + options_.limits.lost();
  left_[process.task] = {
      .task = process.task, .launch = true, .written = {.out = process.written_stdout, .err = process.written_stderr}};
  reserved_[process.task] = process.ports;
}

void HostAgent::FindLeft(const std::vector<HeldLaunch>& launches) {
  if (options_.supervisor == 1) return;
  std::map<TaskId, HeldLaunch> newest;
  for (const HeldLaunch& held : launches)
    if (HeldLaunch& known = newest[held.task]; known.launch < held.launch) known = held;
  for (const HeldLaunch& held : launches)
    if (newest.at(held.task).launch != held.launch || !left_.contains(held.task)) given_up_[held.launch] = held.task;
  EndGivenUp();
  if (newest.empty() && !left_.empty()) ReserveAgain();  // it is another agent than before
  for (auto& [task, left] : std::exchange(left_, {})) {
    const auto held = newest.find(task);
    if (held == newest.end()) {
      events_.OnNotStarted(task, absl::NotFoundError(absl::StrCat("no process of it is left on ", name())));
      continue;
    }
    left.started = held->second.pid > 0;  // otherwise its start or its end comes
    asked_[held->second.launch] = left;
    if (left.started) events_.OnStarted(task, {.host = name(), .pid_on_host = held->second.pid});
    if (left.end.has_value()) End(task, *left.end);
  }
}

void HostAgent::SendLaunch(const ProcessSpec& process) {
  const auto command = link_->Launch(LaunchEntry::Of(process));
  if (!command.ok())
    return later_.Add([this, task = process.task, why = command.status()] { events_.OnNotStarted(task, why); });
  asked_[*command] = {.task = process.task, .launch = true};
}

std::optional<CommandId> HostAgent::LaunchOf(const TaskId& task) const {
  for (const auto& [command, asked] : asked_)
    if (asked.launch && asked.task == task) return command;
  return std::nullopt;
}

void HostAgent::End(const TaskId& task, EndMode mode) {
  if (state_ == State::kGone) return;
  if (const auto left = left_.find(task); left != left_.end()) {
    left->second.end = mode;
    return;
  }
  const auto send = [this, task, mode] {
    if (const std::optional<CommandId> launch = LaunchOf(task)) link_->End(*launch, mode).IgnoreError();
  };
  Queue({.send = send, .asked = std::nullopt});
}

void HostAgent::Input(const TaskId& task, std::string_view bytes) {
  // Later, behind a launch that gets a new agent.
  if (state_ == State::kGone)
    return later_.Add([this, task, kept = std::string(bytes)] {
      if (state_ != State::kGone) Input(task, kept);
    });
  do {
    const std::string piece(bytes.substr(0, kMaxInputBytes));
    bytes.remove_prefix(piece.size());
    const auto send = [this, task, piece] {
      if (const std::optional<CommandId> launch = LaunchOf(task)) link_->Input(*launch, piece).IgnoreError();
    };
    Queue({.send = send, .asked = std::nullopt});
  } while (!bytes.empty());
}

void HostAgent::PauseOutput(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  // After an error the link has no stream any more, which OnTime sees.
  later_.Add([this, paused] {
    link_->PauseOutput(paused).IgnoreError();
    if (connection_ != nullptr) connection_->Write();
  });
}

void HostAgent::Stop() {
  stopping_ = true;
  later_.Clear();
  queue_.clear();
  link_->PauseOutput(false).IgnoreError();
  if (state_ == State::kGone || !link_->Stop().ok()) return;
  if (connection_ != nullptr) connection_->Write();
}

void HostAgent::OnReserved(const CommandId& command, const TaskId&, const std::vector<std::string>& addresses) {
  const auto found = asked_.find(command);
  if (found == asked_.end()) return;
  const AskedOfHost asked = found->second;
  asked_.erase(found);
  if (stopping_ || asked.renewed) return;
  std::vector<uint16_t> numbers;
  for (const std::string& address : addresses) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    numbers.push_back(parsed.ok() ? parsed->port : 0);
  }
  if (numbers.size() != asked.ports || std::find(numbers.begin(), numbers.end(), 0) != numbers.end())
    return events_.OnNotReserved(
        asked.task, absl::InternalError(absl::StrCat("the agent on ", name(), " reserved other ports than asked for")));
  reserved_[asked.task] = numbers;
  events_.OnReserved(asked.task, addresses);
}

void HostAgent::OnStarted(const CommandId& launch, const TaskId&, int64_t pid) {
  const auto found = asked_.find(launch);
  if (found != asked_.end() && found->second.launch) TellStarted(found->second, pid);
}

void HostAgent::OnFailed(const CommandId& command, const TaskId&, const absl::Status& status) {
  const auto found = asked_.find(command);
  if (found == asked_.end()) return;
  const AskedOfHost asked = found->second;
  asked_.erase(found);
  if (stopping_) return;
  const absl::Status why(status.code(), absl::StrCat("on ", name(), ": ", std::string(status.message())));
  if (asked.renewed)
    return options_.note(
        absl::StrCat("the port of ", asked.task.ToString(), " isn't free any more ", std::string(why.message())));
  if (asked.launch) return events_.OnNotStarted(asked.task, why);
  events_.OnNotReserved(asked.task, why);
}

void HostAgent::OnStopped(uint64_t strays) {
  stopped_ = true;
  strays_ = static_cast<int>(strays);
}

void HostAgent::OnOutput(const CommandId& launch, OutputStream stream, uint64_t position, std::string_view bytes) {
  const auto found = asked_.find(launch);
  if (found == asked_.end() || stopping_) return;
  const uint64_t written = found->second.written.of(stream);
  if (written >= position + bytes.size()) return;
  if (written > position) bytes.remove_prefix(written - position);
  TellStarted(found->second, 0);
  events_.OnOutput(found->second.task, stream, bytes);
}

void HostAgent::OnOutputLost(const CommandId& launch, OutputStream stream, uint64_t position, uint64_t bytes) {
  const auto found = asked_.find(launch);
  if (found == asked_.end() || stopping_) return;
  const uint64_t written = std::max(found->second.written.of(stream), position);
  if (written >= position + bytes) return;
  bytes -= written - position;
  events_.OnOutputLost(found->second.task, stream, bytes);
  if (launch.supervisor < options_.supervisor)
    return options_.note(absl::StrCat(bytes, " bytes of what ", found->second.task.ToString(),
                                      " wrote died with the supervisor before"));
  options_.note(
      absl::StrCat(bytes, " bytes of what ", found->second.task.ToString(), " wrote died with the agent on ", name()));
}

// An end that was waiting for this supervisor comes without the start.
void HostAgent::TellStarted(AskedOfHost& asked, int64_t pid) {
  if (std::exchange(asked.started, true) || stopping_) return;
  events_.OnStarted(asked.task, {.host = name(), .pid_on_host = pid});
}

void HostAgent::OnExit(const CommandId& launch, const TaskId&, const ExitStatus& status, bool) {
  given_up_.erase(launch);
  const auto found = asked_.find(launch);
  if (found == asked_.end()) return;
  if (launch.supervisor < options_.supervisor) TellStarted(found->second, 0);
  if (!found->second.started) return;
  const TaskId task = found->second.task;
  asked_.erase(found);
  if (!stopping_) events_.OnExit(task, status);
}

void HostAgent::OnUsage(const UsageEntry& usage) {
  for (const LaunchUsage& one : usage.launches) {
    const auto asked = asked_.find(one.launch);
    if (asked == asked_.end() || !asked->second.started) continue;
    events_.OnUsage(asked->second.task, {.cpu_seconds = static_cast<double>(one.cpu_micros) / 1e6,
                                         .resident_bytes = one.resident_bytes,
                                         .gpus = one.InUse()});
  }
}

void HostAgent::OnNote(const std::string& line) { options_.note(absl::StrCat(name(), ": ", line)); }

void HostAgent::BecomeGone(const absl::Status& why, bool lost) {
  if (state_ == State::kReady && !stopping_) options_.note(std::string(why.message()));
  state_ = State::kGone;
  lost_ = lost;
  given_up_.clear();
  out_of_reach_at_ = absl::InfiniteFuture();
  why_gone_ = why;
  redial_at_ = absl::InfiniteFuture();
  // The connection may be what calls; it is destroyed later.
  later_.Add([this] {
    connection_.reset();
    stream_ = {};
    for (const auto& [command, asked] : std::exchange(asked_, {})) TellGone(asked);
    for (const QueuedForHost& command : std::exchange(queue_, {}))
      if (command.asked.has_value()) TellGone(*command.asked);
    for (const auto& [task, left] : std::exchange(left_, {})) TellGone(left);
    changed_();
  });
}

void HostAgent::TellGone(const AskedOfHost& asked) {
  if (stopping_ || asked.renewed) return;
  if (!asked.launch) return events_.OnNotReserved(asked.task, why_gone_);
  if (!asked.started) return events_.OnNotStarted(asked.task, why_gone_);
  events_.OnExit(asked.task, {.signal = SIGKILL, .by_its_host = true, .lost_host = lost_ ? name() : ""});
}

}  // namespace muster
