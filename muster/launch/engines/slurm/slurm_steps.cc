#include "muster/launch/engines/slurm/slurm_steps.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/slurm/step_gpus.h"

namespace muster {
namespace {

// A controller that is started again, or has too much to do, answers after a minute or two.
constexpr absl::Duration kTryAgainAfter = absl::Seconds(5);
constexpr int kMostTries = 25;

// Returns nullopt where a step needn't name any.
std::optional<int> GpusOf(const std::map<std::string, int>& gpus, const std::string& host) {
  if (gpus.empty()) return std::nullopt;
  const auto found = gpus.find(host);
  return found == gpus.end() ? 0 : found->second;
}

}  // namespace

SlurmSteps::SlurmSteps(AgentProgram program, std::vector<std::string> environment, FdLoop& loop, const Clock& clock,
                       StepPatience patience)
    : environment_(std::move(environment)),
      loop_(loop),
      clock_(clock),
      patience_(patience),
      program_(std::move(program)) {}

SlurmSteps::~SlurmSteps() {
  AwaitEnds(patience_.by_themselves);
  for (const auto& step : steps_) step->End(/*at_once=*/false);
  AwaitEnds(patience_.asked);
  for (const auto& step : steps_) step->End(/*at_once=*/true);
  AwaitEnds(patience_.killed);
}

void SlurmSteps::AwaitEnds(absl::Duration patience) {
  const absl::Time until = RealClock().Now() + patience;
  std::erase_if(steps_, [&](const auto& step) { return step->AwaitEnd(until); });
}

absl::Status SlurmSteps::Begin(const Meeting& meeting, AgentStarterEvents& events) {
  events_ = &events;
  program_.rendezvous = meeting.file;
  gpus_ = GpusOfNodes(environment_);
  return absl::OkStatus();
}

// One step names one number of GPUs for all of its nodes.
absl::Status SlurmSteps::StartAll(const std::vector<std::string>& hosts) {
  if (gpus_.empty()) return StartStep(StepOnAllNodes(program_, hosts.size()), hosts);
  std::map<int, std::vector<std::string>> by_gpus;
  for (const std::string& host : hosts) by_gpus[GpusOf(gpus_, host).value_or(0)].push_back(host);
  for (const auto& [gpus, some] : by_gpus) RETURN_IF_ERROR(StartStep(StepOnNodes(program_, some, gpus), some));
  return absl::OkStatus();
}

absl::Status SlurmSteps::StartAgain(const std::string& host) {
  return StartStep(StepOnNodes(program_, {host}, GpusOf(gpus_, host)), {host});
}

absl::Status SlurmSteps::StartStep(std::vector<std::string> words, const std::vector<std::string>& hosts, int tries) {
  // The callbacks come from the loop, so not before the step is known.
  const auto self = std::make_shared<const AgentStep*>(nullptr);
  ASSIGN_OR_RETURN(std::unique_ptr<AgentStep> step,
                   AgentStep::Start({.words = std::move(words),
                                     .environment = StepEnvironment(environment_),
                                     .hosts = hosts,
                                     .said = [this, self](const StepLine& line) { OnLine(*self, line); },
                                     .ended = [this, self](const std::string& how) { OnStepEnd(*self, how); }},
                                    loop_));
  *self = step.get();
  courses_[step.get()].tries = tries;
  for (const std::string& host : hosts) newest_[host] = step.get();
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

std::vector<std::string> SlurmSteps::HostsOf(const AgentStep* step) const {
  std::vector<std::string> hosts;
  for (const auto& [host, newest] : newest_)
    if (newest == step) hosts.push_back(host);
  return hosts;
}

void SlurmSteps::OnLine(const AgentStep* step, const StepLine& line) {
  const std::vector<std::string> hosts = HostsOf(step);
  for (const std::string& host : hosts) {
    if (std::find(line.hosts.begin(), line.hosts.end(), host) == line.hosts.end()) continue;
    if (line.ended)
      events_->OnEnded(host, line.text);
    else
      events_->OnSaid(host, line.text);
  }
  if (!line.hosts.empty()) return;
  if (Course& course = courses_.at(step); SaysThatNobodyAnswers(line.text) && course.tries < kMostTries) {
    course.unanswered = line.text;
    return;
  }
  if (absl::StartsWith(line.text, "srun: error: ")) events_->OnSaidOfAll(hosts, line.text);
  // For example that the step waits for resources.
  if (absl::StartsWith(line.text, "srun: Job step ")) events_->OnWaits(hosts, line.text);
}

bool SlurmSteps::TriesAgain(const AgentStep* step) {
  Course& course = courses_.at(step);
  if (course.unanswered.empty() || HostsOf(step).size() != step->hosts().size()) return false;
  course.again_at = clock_.Now() + kTryAgainAfter;
  events_->OnWaits(step->hosts(), absl::StrCat("Slurm's controller doesn't answer; trying again (",
                                               absl::StripPrefix(course.unanswered, "srun: error: "), ")"));
  return true;
}

void SlurmSteps::OnStepEnd(const AgentStep* step, const std::string& how) {
  if (TriesAgain(step)) return;
  for (const std::string& host : HostsOf(step)) events_->OnEnded(host, absl::StrCat("srun ", how));
}

void SlurmSteps::EndStart(const std::string& host) {
  const auto newest = newest_.find(host);
  if (newest != newest_.end() && newest->second->hosts().size() == 1) newest->second->End(/*at_once=*/false);
}

absl::Time SlurmSteps::deadline() const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [step, course] : courses_) first = std::min(first, course.again_at);
  return first;
}

void SlurmSteps::StartAgainWhatIsDue() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const AgentStep& step = *steps_[i];
    Course& course = courses_.at(&step);
    if (course.again_at > clock_.Now()) continue;
    course.again_at = absl::InfiniteFuture();
    // Those that somebody has forgotten meanwhile aren't wanted.
    if (HostsOf(&step).size() != step.hosts().size()) continue;
    const std::vector<std::string> hosts = step.hosts();
    if (const absl::Status started = StartStep(step.words(), hosts, course.tries + 1); !started.ok())
      for (const std::string& host : hosts) events_->OnEnded(host, std::string(started.message()));
  }
}

void SlurmSteps::OnTime() {
  StartAgainWhatIsDue();
  std::erase_if(steps_, [this](const auto& step) {
    const bool is_over = step->has_ended() && HostsOf(step.get()).empty();
    if (is_over) courses_.erase(step.get());
    return is_over;
  });
}

absl::Status SlurmSteps::Explain(const std::string& host, const std::string& said) const {
  if (SaysThatJobHasEnded(said)) return absl::FailedPreconditionError(absl::StrCat("the job has ended: ", said));
  if (absl::StartsWith(said, "srun: ")) return absl::UnavailableError(absl::StrCat("no agents on the nodes: ", said));
  if (absl::StrContains(said, "execve(): ") && absl::StrContains(said, "No such file"))
    return absl::UnavailableError(
        absl::StrCat(host, " has no ", program_.muster, ": put muster into a folder that all nodes see (", said, ")"));
  if (absl::StrContains(said, kCannotReadRendezvous))
    return absl::UnavailableError(absl::StrCat(host, " doesn't see ",
                                               std::filesystem::path(program_.rendezvous).parent_path().string(),
                                               ": start this in a folder that all nodes see (", said, ")"));
  if (absl::StrContains(said, kCannotReachSupervisor))
    return absl::UnavailableError(absl::StrCat(host, " doesn't reach this machine: start this on a node, by srun ",
                                               "--pty bash or in a script for sbatch (", said, ")"));
  return absl::UnavailableError(absl::StrCat(host, ": its agent has ended before it connected: ", said));
}

}  // namespace muster
