#include "muster/sim/agents/simulated_supervisor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster {

// Takes in one host's events: writes down, then lets the plan know.
class SimulatedSupervisor::Host final : public AgentLinkEvents {
 public:
  Host(SimulatedSupervisor& owner, int number)
      : owner_(owner),
        number_(number),
        link_({.job = "job",
               .supervisor = owner.number_,
               .supervisor_id = std::string(kIdBytes, static_cast<char>('A' + owner.number_ % 26)),
               .progress = Written().progress,
               .limits = owner.truth_.limits,
               .probe = &owner.truth_.probe},
              *this, owner.Now()) {}

  AgentLink& link() { return link_; }
  bool stopped() const { return stopped_; }
  bool stop_sent() const { return stop_sent_; }
  bool seen() const { return seen_; }
  size_t unanswered() const { return asked_.size(); }

  void Tick() {
    link_.OnTime(owner_.Now());
    Written().progress.agent_id = link_.progress().agent_id;
    Written().progress.life = link_.progress().life;
    Written().progress.seen = link_.progress().seen;
  }
  void SendStop() {
    if (owner_.Point() && link_.Stop().ok()) stop_sent_ = true;
  }
  std::optional<CommandId> SendLaunch(int task) {
    const auto sent = link_.Launch(LaunchEntry::Of({.task = TaskOf(task), .arguments = {"program"}}));
    if (!sent.ok()) return std::nullopt;
    asked_.insert(*sent);
    return *sent;
  }
  void SendReserve(int task) {
    if (const auto sent = link_.Reserve({.task = TaskOf(task), .ports = {0, 0}}); sent.ok()) asked_.insert(*sent);
  }

  void OnAttached(const std::string&, uint64_t, const std::vector<HeldLaunch>& launches) override {
    if (!owner_.Point()) return;
    for (const HeldLaunch& held : launches) Written().progress.outputs.try_emplace(held.launch);
    if (!std::exchange(seen_, true)) owner_.Found(number_, launches);
  }
  void OnSuspect(bool suspect) override {
    owner_.truth_.Note([&] { return absl::StrCat(Name(), suspect ? " is suspect" : " is heard again"); });
    // A supervisor may as well wait for the stream that it has.
    if (suspect && !owner_.dead_ && owner_.truth_.random.Below(2) == 0) owner_.world_.redial(number_);
  }
  void OnReserved(const CommandId& command, const TaskId&, const std::vector<std::string>&) override {
    Answered(command);
  }
  void OnStarted(const CommandId& launch, const TaskId&, int64_t) override {
    if (!owner_.Point()) return;
    Written().progress.outputs.try_emplace(launch);
    Answered(launch);
    owner_.Point();
  }
  void OnFailed(const CommandId& command, const TaskId&, const absl::Status&) override {
    if (!owner_.Point()) return;
    Answered(command);
    owner_.Ended(number_, command);
    Written().progress.outputs.erase(command);
    Written().progress.ended.insert(command);
    owner_.Point();
  }
  void OnStopped(uint64_t) override { stopped_ = true; }
  void OnOutput(const CommandId& launch, OutputStream stream, uint64_t position, std::string_view bytes) override {
    if (!owner_.Point()) return;
    uint64_t& have = Written().progress.outputs.at(launch).of(stream);
    if (position != have)
      owner_.truth_.Violated(absl::StrCat("output of ", launch.ToString(), " on ", Name(), " comes for position ",
                                          position, "; the log has ", have, " bytes"));
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] != AgentTruth::ByteAt(launch, stream, position + i))
        return owner_.truth_.Violated(absl::StrCat("output of ", launch.ToString(), " differs at ", position + i));
    have = position + bytes.size();
    owner_.truth_.output_bytes += static_cast<int64_t>(bytes.size());
    owner_.Point();
  }
  void OnOutputLost(const CommandId& launch, OutputStream stream, uint64_t position, uint64_t bytes) override {
    if (!owner_.Point()) return;
    if (position + bytes > owner_.world_.read_by_dead(number_, launch, stream))
      owner_.truth_.Violated(absl::StrCat("output of ", launch.ToString(), " on ", Name(), " is lost, ", bytes,
                                          " bytes from ", position, ", that no dead agent had read"));
    Written().progress.outputs.at(launch).of(stream) = position + bytes;
    owner_.Point();
  }
  void OnExit(const CommandId& launch, const TaskId&, const ExitStatus&, bool) override {
    if (!owner_.Point()) return;
    for (const OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) {
      const uint64_t have = Written().progress.outputs.at(launch).of(stream);
      const uint64_t written = owner_.world_.written(number_, launch, stream);
      if (have != written)
        owner_.truth_.Violated(absl::StrCat("the end of ", launch.ToString(), " on ", Name(), " is told after ", have,
                                            " of ", written, " bytes of output"));
    }
    Written().progress.outputs.erase(launch);
    Written().progress.ended.insert(launch);
    owner_.Ended(number_, launch);
    owner_.Point();
  }
  void OnUsage(const UsageEntry&) override {}
  void OnNote(const std::string&) override {}

 private:
  WrittenOfHost& Written() { return owner_.truth_.folder.hosts[static_cast<size_t>(number_)]; }
  std::string Name() const { return absl::StrCat("host ", number_); }
  void Answered(const CommandId& command) {
    if (command.supervisor == owner_.number_ && asked_.erase(command) == 0)
      owner_.truth_.Violated(absl::StrCat("command ", command.ToString(), " on ", Name(), " is answered twice"));
  }

  SimulatedSupervisor& owner_;
  const int number_;
  AgentLink link_;
  std::set<CommandId> asked_;
  bool seen_ = false;  // it has attached
  bool stop_sent_ = false;
  bool stopped_ = false;
};

SimulatedSupervisor::SimulatedSupervisor(AgentTruth& truth, int hosts, int tasks, absl::Time stop_at, World world)
    : truth_(truth),
      stop_at_(stop_at),
      world_(std::move(world)),
      number_(++truth.folder.supervisor),
      began_(truth.world.Now()),
      host_count_(hosts),
      placements_(static_cast<size_t>(tasks)) {
  truth_.Note([&] { return absl::StrCat("supervisor ", number_, " starts"); });
}

SimulatedSupervisor::~SimulatedSupervisor() = default;

AgentLink& SimulatedSupervisor::link(int host) { return hosts_[static_cast<size_t>(host)]->link(); }

bool SimulatedSupervisor::Point() {
  if (dead_) return false;
  if (!points_.Pass()) return true;
  dead_ = true;
  truth_.Note([&] { return absl::StrCat("supervisor ", number_, " is killed"); });
  truth_.world.At(Now(), world_.died);
  return false;
}

bool SimulatedSupervisor::done() const {
  return ready() && std::all_of(hosts_.begin(), hosts_.end(),
                                [](const auto& host) { return host->stopped() || host->link().lost(); });
}

std::string SimulatedSupervisor::WaitsFor() const {
  std::string text;
  for (size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i]->stopped() && !hosts_[i]->link().lost())
      absl::StrAppend(&text, " host ", i, hosts_[i]->link().attached() ? " (attached)" : "");
  return text;
}

void SimulatedSupervisor::Tick() {
  if (dead_) return;
  if (truth_.folder.supervisor != number_ && !truth_.probe.Has(PlantedAgentBug::kWriteWithoutNumber) &&
      !truth_.probe.Has(PlantedAgentBug::kAcceptLowerNumber)) {
    truth_.Note([&] { return absl::StrCat("supervisor ", number_, " finds another number and ends"); });
    dead_ = true;
    truth_.world.At(Now(), world_.died);
    return;
  }
  if (!ready()) {
    if (Now() <= began_ + truth_.limits.number_age) return;
    for (int host = 0; host < host_count_; ++host) hosts_.push_back(std::make_unique<Host>(*this, host));
  }
  for (auto& host : hosts_) {
    host->link().OnNumberRead(Now());
    host->Tick();
    const auto& refused = host->link().refused();
    if (!refused || refused->reason != Refusal::kNewerSupervisor) continue;
    truth_.Note([&] { return absl::StrCat("supervisor ", number_, " is refused and ends"); });
    dead_ = true;
    truth_.world.At(Now(), world_.died);
    return;
  }
  Plan();
}

void SimulatedSupervisor::Found(int host, const std::vector<HeldLaunch>& launches) {
  for (size_t task = 0; task < placements_.size(); ++task) {
    bool there = false;
    for (const Placement& placement : placements_[task]) there |= placement.host == host;
    for (const HeldLaunch& held : launches) {
      if (IndexOf(held.task) != static_cast<int>(task)) continue;
      there = true;
      placements_[task].push_back({host, held.launch});
    }
    if (!there) truth_.folder.may_run_on[task].erase(host);
  }
}

void SimulatedSupervisor::Ended(int host, const CommandId& launch) {
  for (size_t task = 0; task < placements_.size(); ++task) {
    const size_t before = placements_[task].size();
    std::erase_if(placements_[task],
                  [&](const Placement& placement) { return placement.host == host && placement.launch == launch; });
    if (placements_[task].size() == before) continue;
    bool there = false;
    for (const Placement& placement : placements_[task]) there |= placement.host == host;
    if (!there) truth_.folder.may_run_on[task].erase(host);
  }
}

void SimulatedSupervisor::Plan() {
  for (size_t host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host]->link().lost()) continue;
    truth_.folder.hosts[host].lost = true;
    for (size_t task = 0; task < placements_.size(); ++task) {
      std::erase_if(placements_[task],
                    [&](const Placement& placement) { return placement.host == static_cast<int>(host); });
      truth_.folder.may_run_on[task].erase(static_cast<int>(host));
    }
  }
  if (Now() >= stop_at_) {
    for (auto& host : hosts_)
      if (!host->stop_sent() && !host->link().lost()) host->SendStop();
    return;
  }
  for (int task = 0; task < static_cast<int>(placements_.size()); ++task)
    if (MayStart(task)) Place(task);
  if (truth_.random.Below(40) == 0) EndSomething();
}

// A ps never runs twice; a worker is replaced as soon as every host where it may run is suspect.
bool SimulatedSupervisor::MayStart(int task) const {
  const std::set<int>& hosts = truth_.folder.may_run_on[static_cast<size_t>(task)];
  if (task == 0) return hosts.empty();
  return std::all_of(hosts.begin(), hosts.end(),
                     [&](int host) { return hosts_[static_cast<size_t>(host)]->link().suspect(); });
}

void SimulatedSupervisor::Place(int task) {
  std::vector<int> fit;
  for (size_t host = 0; host < hosts_.size(); ++host)
    if (hosts_[host]->link().may_send() && hosts_[host]->seen() && !hosts_[host]->link().suspect())
      fit.push_back(static_cast<int>(host));
  if (fit.empty()) return;
  const int host = fit[truth_.random.Below(fit.size())];
  if (!Point()) return;
  for (const Placement& old : placements_[static_cast<size_t>(task)])
    if (old.launch) (void)hosts_[static_cast<size_t>(old.host)]->link().End(*old.launch, EndMode::kAtOnce);
  truth_.folder.may_run_on[static_cast<size_t>(task)].insert(host);
  if (!Point()) return;
  hosts_[static_cast<size_t>(host)]->SendReserve(task);
  placements_[static_cast<size_t>(task)].push_back({host, hosts_[static_cast<size_t>(host)]->SendLaunch(task)});
  Point();
}

void SimulatedSupervisor::EndSomething() {
  const auto& placements = placements_[truth_.random.Below(placements_.size())];
  if (placements.empty() || !placements.back().launch) return;
  (void)link(placements.back().host)
      .End(*placements.back().launch, truth_.random.Below(2) == 0 ? EndMode::kGently : EndMode::kAtOnce);
}

}  // namespace muster
