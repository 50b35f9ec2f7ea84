#include "muster/sim/agents/agent_simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/bytes.h"

namespace muster {
namespace {

constexpr size_t kSocketBytes = 64 << 10;
constexpr absl::Duration kTick = absl::Milliseconds(250);

constexpr std::pair<const char*, PlantedAgentBug> kPlants[] = {
    {"accept-lower-number", PlantedAgentBug::kAcceptLowerNumber},
    {"acknowledge-unwritten", PlantedAgentBug::kAcknowledgeUnwritten},
    {"drop-highest", PlantedAgentBug::kDropHighest},
    {"ignore-positions", PlantedAgentBug::kIgnorePositions},
    {"renew-by-any-frame", PlantedAgentBug::kRenewByAnyFrame},
    {"replace-early", PlantedAgentBug::kReplaceEarly},
    {"write-without-number", PlantedAgentBug::kWriteWithoutNumber},
};

}  // namespace

const std::vector<std::string>& PlantedAgentBugNames() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    for (const auto& [name, bug] : kPlants) all.emplace_back(name);
    return all;
  }());
  return names;
}

absl::StatusOr<PlantedAgentBug> ParsePlantedAgentBug(const std::string& name) {
  for (const auto& [known, bug] : kPlants)
    if (name == known) return bug;
  return absl::InvalidArgumentError(
      absl::StrCat("there is no plant '", name, "'; there are ", absl::StrJoin(PlantedAgentBugNames(), ", ")));
}

AgentSimulation::AgentSimulation(const AgentSchedule& schedule, std::optional<PlantedAgentBug> bug,
                                 std::function<void(absl::Time, const std::string&)> listener)
    : schedule_(schedule),
      world_(schedule.seed),
      truth_(world_, schedule.seed, bug),
      troubles_(static_cast<size_t>(schedule.hosts)),
      successor_troubles_(static_cast<size_t>(schedule.hosts)) {
  world_.SetListener(std::move(listener));
  truth_.folder.hosts.resize(static_cast<size_t>(schedule.hosts));
  truth_.folder.may_run_on.resize(static_cast<size_t>(schedule.tasks));
  for (int host = 0; host < schedule.hosts; ++host)
    hosts_.push_back(std::make_unique<AgentHost>(truth_, host, [this, host] { AgentGone(host); }));
}

AgentOutcome AgentSimulation::Run() {
  const absl::Time began = Now();
  for (auto& host : hosts_) host->StartAgent();
  StartSupervisor();
  for (const AgentFault& fault : schedule_.faults) world_.At(began + fault.at, [this, fault] { Meet(fault); });
  world_.At(began, [this] { Tick(); });
  const auto ending = world_.Run([this] { return Over(); }, {.time = absl::Minutes(30), .events = 1'000'000});
  CheckTheEnd(ending);
  return {.violation = truth_.violation,
          .fingerprint = world_.fingerprint(),
          .events = world_.events(),
          .simulated = Now() - began,
          .commands = truth_.commands,
          .launches = truth_.launches,
          .output_bytes = truth_.output_bytes};
}

bool AgentSimulation::Over() {
  if (truth_.violation) return true;
  const bool nothing_runs = truth_.running.empty();
  if (!supervisors_.empty()) return nothing_runs && supervisors_.back().process->done() && supervisors_.size() == 1;
  if (supervisor_comes_) return false;
  const absl::Time ended = last_supervisor_ended_.value_or(absl::InfinitePast());
  if (!nothing_runs && Now() > ended + truth_.limits.lost())
    truth_.Violated(absl::StrCat("a task of host ", truth_.running.begin()->first, " runs on, ",
                                 absl::FormatDuration(Now() - ended), " after the last supervisor's end"));
  return nothing_runs;
}

void AgentSimulation::CheckTheEnd(SimulatedWorld::Ending ending) {
  if (truth_.violation || ending == SimulatedWorld::Ending::kOver) return;
  truth_.Violated(absl::StrCat("there is no end; ", truth_.running.size(), " tasks run; the supervisor waits for",
                               supervisors_.empty() ? "" : supervisors_.back().process->WaitsFor()));
}

void AgentSimulation::Tick() {
  world_.At(Now() + kTick, [this] { Tick(); });
  for (auto& host : hosts_) host->Tick();
  std::vector<uint64_t> numbers;
  for (const Supervisor& supervisor : supervisors_) numbers.push_back(supervisor.process->number());
  for (const uint64_t number : numbers) {
    Supervisor* supervisor = Find(number);
    if (supervisor == nullptr) continue;
    supervisor->process->Tick();
    for (int host = 0; host < schedule_.hosts; ++host) {
      const std::shared_ptr<Stream> stream = supervisor->lines[static_cast<size_t>(host)].stream;
      if (stream == nullptr) {
        Dial(number, host);
      } else {
        Pump(stream, true);
        Pump(stream, false);
      }
    }
  }
}

AgentSimulation::Supervisor* AgentSimulation::Find(uint64_t number) {
  for (Supervisor& supervisor : supervisors_)
    if (supervisor.process->number() == number && supervisor.process->alive()) return &supervisor;
  return nullptr;
}

void AgentSimulation::StartSupervisor() {
  supervisor_comes_ = false;
  const uint64_t number = truth_.folder.supervisor + 1;
  SimulatedSupervisor::World world{
      .redial = [this, number](int host) { DialAgain(number, host); },
      .written = [this](int host, const CommandId& launch,
                        OutputStream stream) { return hosts_[static_cast<size_t>(host)]->Written(launch, stream); },
      .read_by_dead =
          [this](int host, const CommandId& launch, OutputStream stream) {
            return hosts_[static_cast<size_t>(host)]->ReadByTheDead(launch, stream);
          },
      .died = [this, number] { SupervisorDied(number, back_after_); }};
  Supervisor supervisor;
  supervisor.process = std::make_unique<SimulatedSupervisor>(
      truth_, schedule_.hosts, schedule_.tasks, absl::FromUnixSeconds(1000000000) + schedule_.run, std::move(world));
  supervisor.lines.resize(static_cast<size_t>(schedule_.hosts));
  supervisors_.push_back(std::move(supervisor));
}

void AgentSimulation::SupervisorDied(uint64_t number, absl::Duration back_after) {
  const auto found = std::find_if(supervisors_.begin(), supervisors_.end(),
                                  [&](const Supervisor& supervisor) { return supervisor.process->number() == number; });
  if (found == supervisors_.end()) return;
  const bool newest = number == truth_.folder.supervisor;
  std::vector<std::shared_ptr<Stream>> streams;
  for (const Line& line : found->lines)
    if (line.stream) streams.push_back(line.stream);
  dead_.push_back(std::move(*found));
  supervisors_.erase(found);
  for (const auto& stream : streams) Close(stream);
  if (supervisors_.empty()) last_supervisor_ended_ = Now();
  if (!newest || back_after == absl::InfiniteDuration()) return;
  supervisor_comes_ = true;
  world_.At(Now() + back_after, [this] { StartSupervisor(); });
}

void AgentSimulation::Meet(const AgentFault& fault) {
  truth_.Note([&] { return "FAULT: " + fault.ToString(); });
  AgentHost& host = *hosts_[static_cast<size_t>(fault.host)];
  Trouble& trouble = troubles_[static_cast<size_t>(fault.host)];
  const auto lasts = [&](Trouble& whose, bool to_agent) {
    absl::Time& until = whose.until[to_agent ? 1 : 0];
    until = std::max(until, Now() + fault.lasts);
  };
  switch (fault.kind) {
    case AgentFaultKind::kCut:
      for (const Supervisor& supervisor : supervisors_)
        if (const auto& stream = supervisor.lines[static_cast<size_t>(fault.host)].stream)
          stream->ways[fault.to_agent ? 1 : 0].cut_after = fault.bytes;
      break;
    case AgentFaultKind::kPart:
      lasts(trouble, true);
      lasts(trouble, false);
      break;
    case AgentFaultKind::kMute:
      lasts(trouble, false);
      break;
    case AgentFaultKind::kDeaf:
      lasts(trouble, true);
      break;
    case AgentFaultKind::kKillAgent:
      host.KillAgentAt(fault.passes, fault.lasts);
      break;
    case AgentFaultKind::kPauseAgent:
      host.PauseAgent(fault.lasts);
      break;
    case AgentFaultKind::kKillHost:
      host.KillHost();
      break;
    case AgentFaultKind::kKillSupervisor:
      back_after_ = fault.lasts;
      if (!supervisors_.empty()) supervisors_.back().process->KillAt(fault.passes);
      break;
    case AgentFaultKind::kReplaceSupervisor: {
      if (supervisors_.empty()) break;
      Trouble& successor = successor_troubles_[static_cast<size_t>(fault.host)];
      successor = {.least_supervisor = truth_.folder.supervisor + 1};
      lasts(successor, true);
      lasts(successor, false);
      StartSupervisor();
      break;
    }
  }
}

absl::Time AgentSimulation::ReachableFrom(uint64_t supervisor, int host, bool to_agent) const {
  absl::Time until = Now();
  for (const auto* troubles : {&troubles_, &successor_troubles_}) {
    const Trouble& trouble = (*troubles)[static_cast<size_t>(host)];
    if (supervisor >= trouble.least_supervisor) until = std::max(until, trouble.until[to_agent ? 1 : 0]);
  }
  return until;
}

void AgentSimulation::DialAgain(uint64_t supervisor, int host) {
  Supervisor* dialler = Find(supervisor);
  if (dialler == nullptr) return;
  if (const auto stream = dialler->lines[static_cast<size_t>(host)].stream) Close(stream);
  Dial(supervisor, host);
}

void AgentSimulation::Dial(uint64_t supervisor, int host) {
  Supervisor* dialler = Find(supervisor);
  if (dialler == nullptr || !dialler->process->ready()) return;
  Line& line = dialler->lines[static_cast<size_t>(host)];
  if (line.dialling || line.stream || dialler->process->link(host).lost()) return;
  line.dialling = true;
  world_.At(Now() + line.pause + truth_.Draw(absl::ZeroDuration(), absl::Milliseconds(20)),
            [this, supervisor, host] { Connect(supervisor, host); });
}

void AgentSimulation::Connect(uint64_t supervisor, int host) {
  Supervisor* dialler = Find(supervisor);
  if (dialler == nullptr) return;
  Line& line = dialler->lines[static_cast<size_t>(host)];
  line.dialling = false;
  SupervisorLink* agent = hosts_[static_cast<size_t>(host)]->link();
  AgentLink& link = dialler->process->link(host);
  const bool reaches =
      ReachableFrom(supervisor, host, true) <= Now() && ReachableFrom(supervisor, host, false) <= Now();
  if (line.stream || link.lost() || link.refused() || agent == nullptr || !reaches) {
    line.pause = std::min<absl::Duration>(line.pause * 2, absl::Seconds(2));
    return;  // Tick dials again
  }
  line.pause = absl::Milliseconds(50);
  auto stream = std::make_shared<Stream>(Stream{.supervisor = supervisor, .host = host});
  for (Stream::Way& way : stream->ways) way.last = Now();
  stream->id = agent->OnStream(Now());
  line.stream = stream;
  link.OnStream(Now());
  Pump(stream, true);
}

// As long as the socket has room.
void AgentSimulation::Pump(const std::shared_ptr<Stream>& stream, bool to_agent) {
  while (stream->open && stream->ways[to_agent ? 1 : 0].on_its_way < kSocketBytes) {
    std::string frame;
    if (to_agent) {
      Supervisor* supervisor = Find(stream->supervisor);
      if (supervisor == nullptr || supervisor->lines[static_cast<size_t>(stream->host)].stream != stream) return;
      frame = supervisor->process->link(stream->host).NextFrame(Now());
    } else {
      AgentHost& host = *hosts_[static_cast<size_t>(stream->host)];
      if (host.link() == nullptr || !host.Point()) return;
      frame = host.link()->NextFrame(Now(), stream->id);
      if (frame.empty() && !host.link()->Wants(stream->id)) {
        // Closed once everything has been written.
        if (stream->ways[0].on_its_way == 0) Close(stream);
        return;
      }
    }
    if (frame.empty()) return;
    const size_t first = truth_.random.Below(frame.size() + 1);
    SendPiece(stream, to_agent, frame.substr(0, first));
    SendPiece(stream, to_agent, frame.substr(first));
  }
}

void AgentSimulation::SendPiece(const std::shared_ptr<Stream>& stream, bool to_agent, std::string piece) {
  Stream::Way& way = stream->ways[to_agent ? 1 : 0];
  const absl::Time free = ReachableFrom(stream->supervisor, stream->host, to_agent);
  way.last = std::max({way.last, free, Now()}) + truth_.Draw(absl::Microseconds(100), absl::Milliseconds(15));
  way.on_its_way += piece.size();
  way.pieces.push_back(std::move(piece));
  world_.At(way.last, [this, stream, to_agent] { Deliver(stream, to_agent); });
}

// Comes once for each piece, and takes the one that was sent first.
void AgentSimulation::Deliver(const std::shared_ptr<Stream>& stream, bool to_agent) {
  if (!stream->open) return;
  AgentHost& host = *hosts_[static_cast<size_t>(stream->host)];
  const absl::Time free = ReachableFrom(stream->supervisor, stream->host, to_agent);
  const absl::Time woken = to_agent ? std::max(free, host.paused_until()) : free;
  Stream::Way& way = stream->ways[to_agent ? 1 : 0];
  if (woken > Now()) {
    world_.At(woken, [this, stream, to_agent] { Deliver(stream, to_agent); });
    return;
  }
  std::string piece = std::move(way.pieces.front());
  way.pieces.pop_front();
  way.on_its_way -= piece.size();
  bool cut = false;
  if (way.cut_after) {
    cut = *way.cut_after <= piece.size();
    if (cut) piece.resize(*way.cut_after);
    *way.cut_after -= cut ? 0 : piece.size();
  }
  absl::Status status;
  Supervisor* supervisor = Find(stream->supervisor);
  if (to_agent) {
    if (host.link() != nullptr && host.Point())
      status = host.link()->OnBytes(Now(), stream->id, AsBytes(piece.data(), piece.size()));
  } else if (supervisor != nullptr && supervisor->lines[static_cast<size_t>(stream->host)].stream == stream) {
    status = supervisor->process->link(stream->host).OnBytes(Now(), AsBytes(piece.data(), piece.size()));
  }
  if (!status.ok())
    truth_.Violated(absl::StrCat(to_agent ? "the agent of host " : "the supervisor doesn't understand host ",
                                 stream->host, to_agent ? " doesn't understand: " : ": ", status.ToString()));
  if (cut) truth_.Note([&] { return absl::StrCat("the stream of host ", stream->host, " is cut"); });
  if (cut) return Close(stream);
  Pump(stream, true);
  Pump(stream, false);
}

// Each end notices by itself.
void AgentSimulation::Close(const std::shared_ptr<Stream>& stream) {
  if (!std::exchange(stream->open, false)) return;
  const auto late = [this] { return truth_.Draw(absl::ZeroDuration(), absl::Milliseconds(100)); };
  const absl::Time at_agent = ReachableFrom(stream->supervisor, stream->host, true) + late();
  world_.At(at_agent, [this, stream] {
    if (SupervisorLink* agent = hosts_[static_cast<size_t>(stream->host)]->link()) agent->OnStreamEnd(stream->id);
  });
  world_.At(ReachableFrom(stream->supervisor, stream->host, false) > Now() ? Now() : Now() + late(), [this, stream] {
    Supervisor* supervisor = Find(stream->supervisor);
    if (supervisor == nullptr || supervisor->lines[static_cast<size_t>(stream->host)].stream != stream) return;
    supervisor->lines[static_cast<size_t>(stream->host)].stream = nullptr;
    supervisor->process->link(stream->host).OnStreamEnd();
    Dial(stream->supervisor, stream->host);
  });
}

void AgentSimulation::AgentGone(int host) {
  for (const Supervisor& supervisor : supervisors_)
    if (const auto stream = supervisor.lines[static_cast<size_t>(host)].stream) Close(stream);
}

}  // namespace muster
