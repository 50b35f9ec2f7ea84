#include "muster/launch/engines/slurm/slurm_engine.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/slurm/node_addresses.h"
#include "muster/launch/engines/slurm/step_command.h"
#include "muster/launch/engines/slurm/step_gpus.h"

namespace muster {
namespace {

// How long agents have to end by themselves, after they were asked, and after Slurm was told to kill them.
constexpr absl::Duration kEndPatience[] = {absl::Seconds(2), absl::Seconds(5), absl::Seconds(3)};

AgentProgram ProgramOfAgents(const SlurmEngineOptions& options, const std::string& rendezvous) {
  return {.muster = options.muster,
          .job = options.job,
          .rendezvous = rendezvous,
          .grace = options.grace,
          .in_job = options.in_job};
}

// What an agent says that finds no supervisor.
constexpr char kCannotReach[] = "can't reach";
constexpr char kCannotRead[] = "cannot read ";

bool CannotConnect(const std::string& said) {
  return absl::StrContains(said, kCannotReach) || absl::StrContains(said, kCannotRead);
}

std::vector<std::string> WithPort(const std::vector<std::string>& addresses, uint16_t port) {
  std::vector<std::string> with;
  for (const std::string& address : addresses)
    with.push_back(absl::StrContains(address, ':') ? absl::StrCat("[", address, "]:", port)
                                                   : absl::StrCat(address, ":", port));
  return with;
}

// Returns nullopt where a step needn't name any.
std::optional<int> GpusOf(const std::map<std::string, int>& gpus, const std::string& host) {
  if (gpus.empty()) return std::nullopt;
  const auto found = gpus.find(host);
  return found == gpus.end() ? 0 : found->second;
}

}  // namespace

SlurmEngine::SlurmEngine(SlurmEngineOptions options, FdLoop& loop, const Clock& clock)
    : options_(std::move(options)), loop_(loop), clock_(clock) {}

SlurmEngine::~SlurmEngine() {
  for (const absl::Duration& patience : kEndPatience) {
    const absl::Time until = RealClock().Now() + patience;
    std::erase_if(steps_, [&](const auto& step) { return step->AwaitEnd(until); });
    const bool asked = &patience != std::begin(kEndPatience);
    for (const auto& step : steps_) step->End(/*at_once=*/asked);
  }
  if (listener_ != nullptr) unlink(RendezvousFile().c_str());
}

std::string SlurmEngine::RendezvousFile() const { return absl::StrCat(options_.folder, "/.muster-", options_.job); }

absl::Status SlurmEngine::Start(EngineEvents& events) {
  events_ = &events;
  if (access(options_.muster.c_str(), X_OK) != 0)
    return absl::NotFoundError(
        absl::StrCat(options_.muster, " isn't there any more, so the nodes can't run it: start again"));
  const std::set<std::string> hosts(options_.hosts.begin(), options_.hosts.end());
  rendezvous_ = NewRendezvous({});
  if (options_.goes_on) {
    ASSIGN_OR_RETURN(rendezvous_, ReadRendezvous(RendezvousFile()));
  }
  ASSIGN_OR_RETURN(listener_, AgentListener::Listen(
                                  hosts, rendezvous_.secret, loop_, clock_,
                                  [this](const std::string& host, Socket socket, const std::string& rest) {
                                    OnArrival(host, std::move(socket), rest);
                                  },
                                  options_.ports));
  rendezvous_.addresses = WithPort(AddressesTowards(options_.hosts), listener_->port());
  RETURN_IF_ERROR(WriteRendezvous(RendezvousFile(), rendezvous_));
  for (const std::string& host : options_.hosts)
    nodes_[host].found_by = options_.goes_on ? clock_.Now() + kFindPatience : absl::InfinitePast();
  gpus_ = GpusOfNodes(options_.environment);
  return options_.goes_on ? absl::OkStatus() : StartOnAllNodes();
}

// One step names one number of GPUs for all of its nodes.
absl::Status SlurmEngine::StartOnAllNodes() {
  const AgentProgram program = ProgramOfAgents(options_, RendezvousFile());
  if (gpus_.empty()) return StartStep(StepOnAllNodes(program, options_.hosts.size()), options_.hosts);
  std::map<int, std::vector<std::string>> by_gpus;
  for (const std::string& host : options_.hosts) by_gpus[GpusOf(gpus_, host).value_or(0)].push_back(host);
  for (const auto& [gpus, hosts] : by_gpus) RETURN_IF_ERROR(StartStep(StepOnNodes(program, hosts, gpus), hosts));
  return absl::OkStatus();
}

absl::Status SlurmEngine::StartStep(std::vector<std::string> words, const std::vector<std::string>& hosts) {
  // The callbacks come from the loop, so not before the step is known.
  const auto self = std::make_shared<const AgentStep*>(nullptr);
  ASSIGN_OR_RETURN(std::unique_ptr<AgentStep> step,
                   AgentStep::Start({.words = std::move(words),
                                     .environment = StepEnvironment(options_.environment),
                                     .hosts = hosts,
                                     .said = [this, self](const StepLine& line) { OnLine(*self, line); },
                                     .ended = [this, self](const std::string& how) { OnStepEnd(*self, how); }},
                                    loop_));
  *self = step.get();
  for (const std::string& host : hosts) {
    Node& node = nodes_.at(host);
    node.step = step.get();
    node.came = false;
    node.ended_at = absl::InfiniteFuture();
    node.patience_ends = clock_.Now() + kStartPatience;
    node.said.clear();
  }
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

void SlurmEngine::Connect(const std::string& host) {
  MUSTER_CHECK(events_ != nullptr);
  Node& node = nodes_.at(host);
  node.wanted = true;
  if (node.came) node.patience_ends = clock_.Now() + kReturnPatience;
  asked_.push_back(host);
}

void SlurmEngine::OnArrival(const std::string& host, Socket socket, const std::string& rest) {
  Node& node = nodes_.at(host);
  node.wanted = false;
  node.came = true;
  node.found_by = absl::InfinitePast();
  const auto carrier = std::make_shared<Socket>(std::move(socket));
  events_->OnStream(host, {.in_fd = carrier->fd(),
                           .out_fd = carrier->fd(),
                           .read_already = rest,
                           .key = KeyOfHost(rendezvous_.secret, host),
                           .address = PeerAddress(carrier->fd()),
                           .carrier = carrier,
                           .last_words = [this, host] {
                             const std::string& said = nodes_.at(host).said;
                             return said.empty() ? "" : absl::StrCat(" (", said, ")");
                           }});
}

void SlurmEngine::OnLine(const AgentStep* step, const StepLine& line) {
  // What an agent or Slurm says itself says more than how srun names its end.
  const auto take = [&](Node& node) {
    if (line.ended) return OnAgentEnd(node, line.text);
    // Why it can't connect says more than that it gives up at last.
    if (!CannotConnect(node.said)) node.said = line.text;
  };
  bool waits = false;
  for (const std::string& host : step->hosts()) {
    Node& node = nodes_.at(host);
    if (node.step != step) continue;
    waits |= node.wanted && !node.came;
    if (std::find(line.hosts.begin(), line.hosts.end(), host) != line.hosts.end()) take(node);
    if (line.hosts.empty() && !node.came && absl::StartsWith(line.text, "srun: error: ")) node.said = line.text;
  }
  // For example that the step waits for resources: its agents haven't begun to start then.
  if (!line.hosts.empty() || !waits || !absl::StartsWith(line.text, "srun: Job step ")) return;
  options_.note(line.text);
  for (const std::string& host : step->hosts())
    if (Node& node = nodes_.at(host); node.step == step) node.patience_ends = clock_.Now() + kStartPatience;
}

void SlurmEngine::OnStepEnd(const AgentStep* step, const std::string& how) {
  for (const std::string& host : step->hosts())
    if (Node& node = nodes_.at(host); node.step == step) OnAgentEnd(node, absl::StrCat("srun ", how));
}

void SlurmEngine::OnAgentEnd(Node& node, const std::string& how) {
  if (node.said.empty()) node.said = how;
  node.ended_at = std::min(node.ended_at, clock_.Now());
}

absl::Time SlurmEngine::DueOf(const Node& node) {
  if (!node.wanted) return absl::InfiniteFuture();
  if (node.step == nullptr) return node.came ? node.patience_ends : node.found_by;
  return std::min(node.ended_at + kLastWords, node.patience_ends);
}

absl::Time SlurmEngine::deadline() const {
  if (!asked_.empty()) return absl::InfinitePast();
  absl::Time first = listener_ == nullptr ? absl::InfiniteFuture() : listener_->deadline();
  for (const auto& [host, node] : nodes_) first = std::min(first, DueOf(node));
  return first;
}

void SlurmEngine::OnTime() {
  if (listener_ == nullptr) return;
  for (const std::string& host : std::exchange(asked_, {})) listener_->Want(host);
  listener_->OnTime();
  for (auto& [host, node] : nodes_)
    if (clock_.Now() >= DueOf(node)) Care(host, node);
  const auto is_past = [this](const auto& step) {
    const auto has_it = [&](const auto& node) { return node.second.step == step.get(); };
    return step->has_ended() && std::none_of(nodes_.begin(), nodes_.end(), has_it);
  };
  std::erase_if(steps_, is_past);
}

// An agent that has been there is replaced at once. One that never came would not come the next time either: whoever
// wants it hears why, and may ask again.
void SlurmEngine::Care(const std::string& host, Node& node) {
  if (node.step == nullptr || node.came) return StartOneNode(host, node);
  if (node.ended_at < absl::InfiniteFuture()) return Fail(host, node, Explain(host, node));
  if (node.step->hosts().size() == 1) node.step->End(/*at_once=*/false);
  Fail(host, node,
       absl::UnavailableError(absl::StrCat(host, ": its agent hasn't connected within ",
                                           absl::FormatDuration(kStartPatience), "; can the node reach this host?",
                                           node.said.empty() ? "" : absl::StrCat(" (", node.said, ")"))));
}

void SlurmEngine::StartOneNode(const std::string& host, Node& node) {
  const absl::Status started =
      StartStep(StepOnNodes(ProgramOfAgents(options_, RendezvousFile()), {host}, GpusOf(gpus_, host)), {host});
  if (!started.ok()) Fail(host, node, absl::UnavailableError(absl::StrCat(host, ": ", std::string(started.message()))));
}

void SlurmEngine::Fail(const std::string& host, Node& node, const absl::Status& why) {
  node.wanted = false;
  node.step = nullptr;
  node.came = false;
  events_->OnNoStream(host, why);
}

absl::Status SlurmEngine::Explain(const std::string& host, const Node& node) const {
  if (SaysThatJobHasEnded(node.said))
    return absl::FailedPreconditionError(absl::StrCat("the job has ended: ", node.said));
  if (absl::StartsWith(node.said, "srun: "))
    return absl::UnavailableError(absl::StrCat("no agents on the nodes: ", node.said));
  if (absl::StrContains(node.said, "execve(): ") && absl::StrContains(node.said, "No such file"))
    return absl::UnavailableError(absl::StrCat(host, " has no ", options_.muster,
                                               ": put muster into a folder that all nodes see (", node.said, ")"));
  if (absl::StrContains(node.said, kCannotRead))
    return absl::UnavailableError(absl::StrCat(host, " doesn't see ", options_.folder,
                                               ": start this in a folder that all nodes see (", node.said, ")"));
  if (absl::StrContains(node.said, kCannotReach))
    return absl::UnavailableError(absl::StrCat(host, " doesn't reach this machine: start this on a node, by srun ",
                                               "--pty bash or in a script for sbatch (", node.said, ")"));
  return absl::UnavailableError(absl::StrCat(host, ": its agent has ended before it connected: ", node.said));
}

}  // namespace muster
