#include "muster/launch/engines/slurm/slurm_jobs.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/absl_view.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/memory_file.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/slurm/allocation.h"
#include "muster/launch/engines/slurm/job_options.h"
#include "muster/launch/engines/slurm/job_script.h"
#include "muster/launch/engines/slurm/step_command.h"
#include "muster/launch/system/program_output.h"
#include "muster/transport/io/socket.h"

namespace muster {
namespace {

// A slurmctld that is busy answers late, and one that is gone not at all.
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kLookPatience = absl::Seconds(4);  // somebody waits for what they asked
constexpr absl::Duration kPatienceOfSubmission = absl::Minutes(2);
// What was left of an earlier life gets this long to end. It is told each second: Slurm may lose a signal.
constexpr absl::Duration kStepPatience = absl::Seconds(10);
constexpr int kStepPauseMs = 200;
constexpr int kLooksPerSignal = 5;
constexpr size_t kJobsAtOnce = 500;  // in the words of one command

// States in which a job has something on nodes, or is about to.
bool IsRunning(absl::string_view state) {
  constexpr absl::string_view kRunning[] = {"RUNNING",   "COMPLETING", "CONFIGURING", "SUSPENDED",
                                            "STAGE_OUT", "SIGNALING",  "RESIZING",    "STOPPED"};
  return std::find(std::begin(kRunning), std::end(kRunning), state) != std::end(kRunning);
}

bool IsWaiting(absl::string_view state) {
  return state == "PENDING" || absl::StartsWith(state, "REQUEUE") || state == "SPECIAL_EXIT" ||
         state == "RESV_DEL_HOLD";
}

// States of a job that Slurm has ended, or its node.
bool IsOfKilledJob(absl::string_view state) {
  constexpr absl::string_view kKilled[] = {"OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "TIMEOUT", "DEADLINE"};
  return std::find(std::begin(kKilled), std::end(kKilled), state) != std::end(kKilled);
}

// Reasons that go away when somebody changes something, not when other jobs end.
bool IsStuck(absl::string_view reason) {
  constexpr absl::string_view kStuck[] = {"AccountNotAllowed", "BadConstraints",     "DependencyNeverSatisfied",
                                          "InvalidAccount",    "InvalidQOS",         "JobHeldAdmin",
                                          "JobHeldUser",       "PartitionConfig",    "PartitionDown",
                                          "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit",
                                          "QOSNotAllowed",     "ReservationDeleted"};
  return std::find(std::begin(kStuck), std::end(kStuck), reason) != std::end(kStuck);
}

// What Slurm says of a script whose output file its host can't open.
constexpr char kLaunchFailure[] = "JobLaunchFailure";

JobNews NewsOfState(absl::string_view state, absl::string_view host, absl::string_view reason) {
  const bool says_why = !reason.empty() && reason != "None";
  JobNews news{.phase = IsWaiting(state)   ? JobPhase::kWaits
                        : IsRunning(state) ? JobPhase::kRuns
                                           : JobPhase::kEnded,
               .text = says_why ? absl::StrCat(state, " (", reason, ")") : std::string(state),
               .cancelled = absl::StartsWith(state, "CANCELLED"),
               .stuck = IsWaiting(state) && IsStuck(reason),
               .ending = state == "COMPLETING",
               .reason = says_why ? std::string(reason) : "",
               .time_over = reason == "TimeLimit" || state == "TIMEOUT"};
  if (news.phase == JobPhase::kEnded && reason == kLaunchFailure)
    news.opened_nothing = host.empty() || host == "n/a" ? "the job's first node" : std::string(host);
  if (IsOfKilledJob(state)) news.exit_code = 128 + SIGKILL;
  return news;
}

// What a command of Slurm says, on one line, as Slurm says it.
std::string WordsOf(const ProgramOutput& output) {
  const std::string said(absl::StripAsciiWhitespace(output.err.empty() ? output.out : output.err));
  return OneLine(absl::StrReplaceAll(said, {{"\n", "; "}}));
}

// Variables of sbatch win over the lines of a script, which are what the user has said of this experiment.
std::vector<std::string> WithoutOptionsOf(const std::string& text, std::vector<std::string> environment) {
  for (absl::string_view option : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&option, "#SBATCH ")) continue;
    absl::ConsumePrefix(&option, "\"");
    if (!absl::ConsumePrefix(&option, "--")) continue;
    option = option.substr(0, option.find('='));
    const std::string name = absl::StrCat(
        "SBATCH_", option == "time" ? "TIMELIMIT" : absl::StrReplaceAll(absl::AsciiStrToUpper(option), {{"-", "_"}}));
    std::erase_if(environment, [&](const std::string& variable) { return IsVariable(variable, name); });
  }
  return environment;
}

absl::StatusOr<ProgramOutput> RunSbatch(const std::vector<std::string>& words,
                                        const std::vector<std::string>& environment, absl::Duration patience) {
  absl::StatusOr<ProgramOutput> output = RunToItsEnd(words, environment, patience);
  if (absl::IsNotFound(output.status()))
    return absl::NotFoundError(
        "there is no sbatch in the PATH; accepted: a machine from which jobs of Slurm are submitted, a login node say");
  return output;
}

}  // namespace

std::map<std::string, JobNews> ParseQueue(std::string_view text) {
  std::map<std::string, JobNews> news;
  for (const absl::string_view line : absl::StrSplit(AbslView(text), '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits('|', 3));
    if (fields.size() == 4)
      news[std::string(fields[0])] = NewsOfState(fields[1], fields[2], absl::StripAsciiWhitespace(fields[3]));
  }
  return news;
}

std::map<std::string, JobNews> ParseAccounting(std::string_view text) {
  std::map<std::string, JobNews> news;
  for (const absl::string_view line : absl::StrSplit(AbslView(text), '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits('|', 1));
    if (fields.size() != 2) continue;
    // "CANCELLED by 1000" names a user by number.
    const std::string state(fields[1].substr(0, fields[1].find(' ')));
    news[std::string(fields[0])] = NewsOfState(state, "", "");
  }
  return news;
}

SlurmJobs::SlurmJobs(const std::vector<std::string>& environment)
    : own_environment_(environment), environment_(SubmitEnvironment(environment)) {}

JobTerms SlurmJobs::TermsOf(const HostSetting& setting) const {
  return TermsOfSlurm(setting.slurm.value_or(SlurmSetting()));
}

std::string SlurmJobs::Script(const JobRequest& request) const { return JobScript(request); }

absl::StatusOr<std::string> SlurmJobs::Submit(const std::string& script, const std::string& after) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  if (!after.empty()) words.push_back(absl::StrCat("--dependency=afterany:", after));
  words.push_back(script);
  const std::string text = PosixFileSystem().ReadFile(script).value_or("");
  ASSIGN_OR_RETURN(const ProgramOutput output,
                   RunSbatch(words, WithoutOptionsOf(text, environment_), kPatienceOfSubmission));
  if (!output.status.ok()) return absl::InvalidArgumentError(WordsOf(output));
  // "17" or "17;CLUSTER".
  const std::string line(absl::StripAsciiWhitespace(output.out));
  std::string id = line.substr(0, line.find(';'));
  if (id.empty() || !std::all_of(id.begin(), id.end(), absl::ascii_isdigit))
    return absl::UnavailableError(absl::StrCat("sbatch has answered without the number of a job: ", OneLine(line)));
  return id;
}

absl::StatusOr<std::string> SlurmJobs::WouldTake(const std::string& script_text) {
  const Socket script(CreateMemoryFile("muster-job"));
  if (write(script.fd(), script_text.data(), script_text.size()) != static_cast<ssize_t>(script_text.size()))
    return absl::UnavailableError("no memory for the job's script");
  const std::string path = absl::StrCat("/proc/", getpid(), "/fd/", script.fd());
  ASSIGN_OR_RETURN(const ProgramOutput output,
                   RunSbatch({"sbatch", "--test-only", path}, WithoutOptionsOf(script_text, environment_), kPatience));
  if (!output.status.ok()) return absl::InvalidArgumentError(WordsOf(output));
  return WordsOf(output);
}

absl::StatusOr<std::map<std::string, JobNews>> SlurmJobs::Look(const std::vector<std::string>& ids) {
  std::map<std::string, JobNews> news;
  for (size_t first = 0; first < ids.size(); first += kJobsAtOnce) {
    const std::vector<std::string> some(
        ids.begin() + static_cast<ptrdiff_t>(first),
        ids.begin() + static_cast<ptrdiff_t>(std::min(ids.size(), first + kJobsAtOnce)));
    ASSIGN_OR_RETURN(const ProgramOutput output,
                     RunToItsEnd({"squeue", "--noheader", "--states=all", "--format=%i|%T|%B|%r",
                                  absl::StrCat("--jobs=", absl::StrJoin(some, ","))},
                                 environment_, kLookPatience));
    // It fails for a single job that it doesn't know.
    if (!output.status.ok() && !absl::StrContains(output.err, "Invalid job id"))
      return absl::UnavailableError(WordsOf(output));
    news.merge(ParseQueue(output.out));
  }
  std::vector<std::string> forgotten;
  for (const std::string& id : ids)
    if (!news.contains(id)) forgotten.push_back(id);
  if (!forgotten.empty()) LookIntoAccounting(forgotten, news);
  for (const std::string& id : ids) news.try_emplace(id);
  return news;
}

void SlurmJobs::LookIntoAccounting(const std::vector<std::string>& ids, std::map<std::string, JobNews>& news) const {
  const auto output = RunToItsEnd({"sacct", "--allocations", "--noheader", "--parsable2", "--format=JobIDRaw,State",
                                   absl::StrCat("--jobs=", absl::StrJoin(ids, ","))},
                                  environment_, kPatience);
  if (output.ok() && output->status.ok()) news.merge(ParseAccounting(output->out));
}

absl::Status SlurmJobs::End(const std::string& id, JobEnd how) {
  std::vector<std::string> words = {"scancel"};
  if (how == JobEnd::kAsk) words.insert(words.end(), {"--batch", "--signal=TERM"});
  words.push_back(id);
  ASSIGN_OR_RETURN(const ProgramOutput output, RunToItsEnd(words, environment_, kPatience));
  if (output.status.ok() || absl::StrContains(output.err, "Invalid job id") ||
      absl::StrContains(output.err, "already completing or completed"))
    return absl::OkStatus();
  return absl::UnavailableError(WordsOf(output));
}

absl::StatusOr<OwnJob> SlurmJobs::Own() {
  ASSIGN_OR_RETURN(const SlurmAllocation allocation, AllocationIn(own_environment_));
  OwnJob own{.id = allocation.job, .hosts = {}};
  for (const AllocatedNode& node : allocation.nodes) own.hosts.push_back(node.name);
  own.submitted_from = VariableIn(own_environment_, "SLURM_SUBMIT_HOST");
  if (!absl::SimpleAtoi(VariableIn(own_environment_, "SLURM_RESTART_COUNT"), &own.restarts)) own.restarts = 0;
  return own;
}

bool SlurmJobs::EndLeftSteps(const std::string& id) {
  const absl::Time until = RealClock().Now() + kStepPatience;
  for (int look = 0; RealClock().Now() < until; ++look) {
    const auto output = RunToItsEnd({"squeue", "--steps", "--noheader", "--format=%i", absl::StrCat("--jobs=", id)},
                                    environment_, kPatience);
    if (!output.ok() || !output->status.ok()) return false;
    std::vector<std::string> kill = {"scancel", "--signal=KILL"};
    const size_t words = kill.size();
    for (const absl::string_view line : absl::StrSplit(output->out, '\n', absl::SkipWhitespace()))
      // "17.0"; the script itself is "17.batch".
      if (const absl::string_view step = absl::StripAsciiWhitespace(line);
          absl::ascii_isdigit(static_cast<unsigned char>(step.back())))
        kill.emplace_back(step);
    if (kill.size() == words) return true;
    if (look % kLooksPerSignal == 0) static_cast<void>(RunToItsEnd(kill, environment_, kPatience));
    poll(nullptr, 0, kStepPauseMs);
  }
  return false;
}

absl::Status SlurmJobs::Requeue(const std::string& id) {
  ASSIGN_OR_RETURN(const ProgramOutput output, RunToItsEnd({"scontrol", "requeue", id}, environment_, kPatience));
  return output.status.ok() ? absl::OkStatus() : absl::UnavailableError(WordsOf(output));
}

absl::Status SlurmJobs::Free(const std::string& id) {
  ASSIGN_OR_RETURN(
      const ProgramOutput output,
      RunToItsEnd({"scontrol", "update", absl::StrCat("JobId=", id), "Dependency="}, environment_, kPatience));
  return output.status.ok() ? absl::OkStatus() : absl::UnavailableError(WordsOf(output));
}

// Slurm holds a requeued job back for two minutes, for nodes that it may have left in a bad state; ours ended well.
void SlurmJobs::Hasten(const std::string& id) {
  static_cast<void>(
      RunToItsEnd({"scontrol", "update", absl::StrCat("JobId=", id), "StartTime=now"}, environment_, kPatience));
}

std::optional<int> SlurmJobs::Restarts(const std::string& id) {
  const auto output = RunToItsEnd({"squeue", "--noheader", "--states=all", "--Format=RestartCnt", "--jobs=" + id},
                                  environment_, kLookPatience);
  int restarts = 0;
  if (!output.ok() || !output->status.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(output->out), &restarts))
    return std::nullopt;
  return restarts;
}

std::optional<absl::Time> SlurmJobs::EndTime(const std::string& id) {
  const auto output =
      RunToItsEnd({"squeue", "--noheader", "--format=%e", absl::StrCat("--jobs=", id)}, environment_, kPatience);
  absl::Time end;
  std::string error;
  if (output.ok() && output->status.ok() &&
      absl::ParseTime("%Y-%m-%dT%H:%M:%S", absl::StripAsciiWhitespace(output->out), absl::LocalTimeZone(), &end,
                      &error))
    return end;
  // What Slurm said at the job's start.
  const auto own = AllocationIn(own_environment_);
  return own.ok() && own->job == id ? own->ends_at : std::nullopt;
}

}  // namespace muster
