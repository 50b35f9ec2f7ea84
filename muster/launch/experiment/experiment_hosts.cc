#include "muster/launch/experiment/experiment_hosts.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/experiment/refused_attempt.h"
#include "muster/launch/foreground/copied_folder.h"
#include "muster/launch/hosts/placement.h"
#include "muster/launch/project/build.h"
#include "muster/launch/project/sha256.h"
#include "muster/launch/project/tree_sender.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/task_run/left_out.h"
#include "muster/observe/trace_part.h"

namespace muster {
namespace {

constexpr char kOutputVariable[] = "OUTPUT_DIR";
constexpr size_t kNameDigits = 8;
constexpr int kMarkBytes = 8;

// Returns the task that stands for a task when it gets its place: the processes of a torchrun worker share one.
TaskId PlacedAs(const ExperimentFile& file, const TaskId& task) {
  if (!file.torchrun.has_value()) return task;
  return {task.job, task.index / file.torchrun->processes};
}

absl::Status CheckForHosts(const ExperimentFile& file, const SubmitOptions& options, bool gpus) {
  // The nodes of a job of Slurm see the home with the environment.
  if (options.hosts.slurm.has_value()) return absl::OkStatus();
  if (HasEnvironment(file, options))
    return absl::InvalidArgumentError(absl::StrCat(
        file.version_place, ": a virtual environment is made on this machine, and hosts don't have it; accepted on ",
        "hosts: --no-venv, which uses the python on each host's PATH"));
  // Each run of a grid has a job, or hosts, of its own there.
  const bool has_own = options.hosts.command.has_value() || !options.hosts.job_engine().empty();
  if (gpus && file.concurrency > 1 && !has_own)
    return absl::InvalidArgumentError(absl::StrCat(
        file.name, ": train.concurrency: runs at the same time would get the same GPUs of a host; accepted with GPUs ",
        "on hosts: 1"));
  return absl::OkStatus();
}

absl::Status WriteMarks(const std::string& path, const std::string& text) {
  return WriteFileAtomically(PosixFileSystem(), path, AsBytes(text.data(), text.size()));
}

}  // namespace

absl::StatusOr<HostPlan> PlanHosts(const ExperimentFile& file, const SubmitOptions& options, int run,
                                   const std::string& first) {
  HostSetting setting = options.hosts;
  // Their names aren't known before they are there.
  if (setting.hosts.empty() && setting.command.has_value()) {
    for (int i = 1; i <= setting.command->hosts; ++i) setting.hosts.push_back({.name = absl::StrCat("host", i)});
    setting.placement.clear();
  }
  if (setting.hosts.empty()) return HostPlan{.ports = setting.ports};
  PlacementRequest request{.tasks = {}, .hosts = setting.hosts, .explicit_hosts = setting.placement};
  auto begin = std::find_if(request.hosts.begin(), request.hosts.end(),
                            [&first](const Host& host) { return !first.empty() && host.name == first; });
  // Otherwise the runs of a grid would all be on the first host.
  if (begin == request.hosts.end())
    begin = request.hosts.begin() + std::max(0, run - 1) % static_cast<int>(request.hosts.size());
  std::rotate(request.hosts.begin(), begin, request.hosts.end());
  bool asks_for_gpus = false;
  for (const TaskId& task : TasksOfFile(file)) {
    const TaskId placed = PlacedAs(file, task);
    if (!request.tasks.empty() && request.tasks.back().task == placed) continue;
    const int gpus = options.no_gpus ? 0 : RoleOfTask(file, task).resources.gpus.value_or(0);
    asks_for_gpus = asks_for_gpus || gpus > 0;
    request.tasks.push_back({.task = placed, .gpus = gpus});
  }
  RETURN_IF_ERROR(CheckForHosts(file, options, asks_for_gpus));
  ASSIGN_OR_RETURN(const auto placement, PlaceOnHosts(request));
  HostPlan plan{.hosts = setting.hosts,
                .placement = {},
                .ssh_config = setting.ssh_config,
                .muster = "/proc/self/exe",  // this very build, also if another one takes its place meanwhile
                .grace = setting.grace,
                .ports = setting.ports};
  for (const TaskId& task : TasksOfFile(file)) plan.placement[task] = placement.at(PlacedAs(file, task));
  plan.optional_hosts = DispensableHosts(plan.placement);
  return plan;
}

std::string HostedName(const Home& home, const RunRecord& run) {
  Sha256 sha;
  sha.AddWithLength(home.path());
  sha.AddWithLength(ThisHost());
  sha.AddWithLength(absl::StrCat(absl::ToUnixMicros(run.created)));
  const std::string digits = absl::BytesToHexString(sha.Finish()).substr(0, kNameDigits);
  return absl::StrCat("home-", digits, "/", run.id.ToString());
}

std::string HostBefore(const Home& home, const ExperimentId& id, int present, const TaskId& task) {
  const absl::StatusOr<ReadRecords> read = ReadRecordsFrom(home.records(id), 0);
  if (!read.ok()) return "";
  std::string host;
  for (const std::string& text : read->records) {
    const absl::StatusOr<RunChange> change = ParseRecordText(text);
    if (!change.ok() || change->run.attempt >= present) continue;
    for (const TaskRecord& one : change->tasks)
      if (one.task == task && one.state == RunState::kRunning) host = one.host;
  }
  return host;
}

void ExperimentHosts::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  if (copy_.has_value() && copy_->Owns(task)) copy_->OnOutput(task, stream, bytes);
  if (fetch_.has_value() && fetch_->Owns(task)) fetch_->OnOutput(task, stream, bytes);
}

absl::StatusOr<std::vector<std::string>> ExperimentHosts::CopyCode() {
  ASSIGN_OR_RETURN(const DescribedTree tree,
                   DescribeTree(run_.work, {.which = ListedFiles::kAll, .between = calls_.between}));
  ASSIGN_OR_RETURN(const NonceFile code, NonceFile::Make(std::filesystem::path(run_.work).parent_path()));
  ASSIGN_OR_RETURN(const NonceFile output, NonceFile::Make(run_.output_dir, code.nonce()));
  if (const std::string ahead = CopyAheadText(tree); !ahead.empty()) calls_.say(ahead);
  CodeCopyOrder order{.job = run_.run_id,
                      .hosts = hosts_,
                      .left_out = LeftOutHosts(run_.plan),
                      .optional = run_.plan.optional_hosts,
                      .environment = {{kRunIdVariable, run_.run_id}},
                      .see_paths = {code.path(), output.path()},
                      .nonce = code.nonce(),
                      .output_name = run_.name};
  RETURN_IF_ERROR(AddMarks(order));
  copy_.emplace(order, tree, tasks_);
  auto placed = copy_->Run();
  copy_.reset();
  RETURN_IF_ERROR(placed.status());
  placed_ = *std::move(placed);
  RETURN_IF_ERROR(CheckMark(order));
  std::vector<std::string> lines = LinesAboutOutput();
  lines.insert(lines.begin(), CopiedText(placed_));
  return lines;
}

absl::Status ExperimentHosts::AddMarks(CodeCopyOrder& order) const {
  order.output_host = run_.plan.placement.at(run_.chief);
  order.output_before =
      absl::StrSplit(PosixFileSystem().ReadFile(run_.mark_file).value_or(""), '\n', absl::SkipEmpty());
  order.output_next = RandomHex(kMarkBytes);
  std::error_code error;
  bool empty = true;
  for (const auto& entry : std::filesystem::directory_iterator(run_.output_dir, error))
    empty = empty && absl::StartsWith(entry.path().filename().string(), kNoncePrefix);
  order.output_anew = empty && order.output_before.empty();
  // Either may be what the host has if this process is killed now.
  return WriteMarks(run_.mark_file, absl::StrCat(absl::StrJoin(order.output_before, "\n"), "\n", order.output_next));
}

absl::Status ExperimentHosts::CheckMark(const CodeCopyOrder& order) const {
  const PlacedCode& chief = placed_.at(order.output_host);
  const bool finds_it_there = !chief.output.empty() && !chief.output_is_other;
  const absl::Status is_here = finds_it_there ? absl::OkStatus() : CheckOutputIsHere(run_.elsewhere_file);
  if (!chief.output_is_other && is_here.ok())
    return WriteMarks(run_.mark_file, chief.output.empty() ? "" : order.output_next);
  RETURN_IF_ERROR(WriteMarks(run_.mark_file, absl::StrJoin(order.output_before, "\n")));
  RETURN_IF_ERROR(is_here);
  return RefusedAttempt(absl::StrCat(
      order.output_host, " lacks what earlier attempts have written, and would begin anew; it is in ", run_.output_dir,
      " here. Accepted: the hosts of the last attempt, --on local, or hosts that see that folder; muster rerun begins "
      "anew"));
}

std::string OutputPlaces(const std::map<std::string, PlacedCode>& placed, const std::string& chief) {
  const std::string& folder = placed.at(chief).output;
  if (folder.empty()) return "";
  std::string same = chief, others;
  for (const auto& [host, code] : placed) {
    if (host == chief || code.output.empty()) continue;
    if (code.output == folder)
      absl::StrAppend(&same, ", ", host);
    else
      absl::StrAppend(&others, ", on ", host, " in ", code.output);
  }
  return absl::StrCat("on ", same, " in ", folder, others);
}

absl::Status CheckOutputIsHere(const std::string& elsewhere_file) {
  const absl::StatusOr<std::string> where = PosixFileSystem().ReadFile(elsewhere_file);
  if (absl::IsNotFound(where.status())) return absl::OkStatus();
  RETURN_IF_ERROR(where.status());
  return RefusedAttempt(
      absl::StrCat("what an earlier attempt has written never came here, and this one would begin anew: it is ",
                   OneLine(*where), ". Accepted: the hosts of that attempt; without ", elsewhere_file,
                   ", this one goes on with what is here; muster rerun begins anew"));
}

absl::Status ExperimentHosts::NoteOutput() const {
  const std::string places = OutputPlaces(placed_, run_.plan.placement.at(run_.chief));
  return places.empty() ? absl::OkStatus() : WriteMarks(run_.elsewhere_file, places);
}

std::vector<std::string> ExperimentHosts::WhereOutputStays() const {
  std::vector<std::string> lines;
  for (const std::string& host : hosts_)
    if (const auto code = placed_.find(host); code != placed_.end() && !code->second.output.empty())
      lines.push_back(absl::StrCat("the output on ", host, " stays there, in ", code->second.output));
  return lines;
}

std::vector<std::string> ExperimentHosts::LinesAboutOutput() const {
  std::vector<std::string> own;
  for (const auto& [host, code] : placed_)
    if (!code.output.empty()) own.push_back(host);
  if (own.empty()) return {};
  const bool one = own.size() == 1;
  std::vector<std::string> lines = {absl::StrCat(
      absl::StrJoin(own, ", "), one ? " doesn't see " : " don't see ", run_.output_dir, ": tasks there have the ",
      kOutputVariable, " ", placed_.at(own.front()).output, "; what they write comes here when the run has ended")};
  const auto evaluator = run_.plan.placement.find({kEvaluatorJob, 0});
  if (evaluator == run_.plan.placement.end()) return lines;
  const std::string& chief = run_.plan.placement.at(run_.chief);
  const bool both_here = placed_.at(chief).output.empty() && placed_.at(evaluator->second).output.empty();
  if (evaluator->second != chief && !both_here)
    lines.push_back(absl::StrCat("the evaluator on ", evaluator->second, " finds no checkpoint unless it shares this ",
                                 "folder with ", chief, ", where they are written; placement: {evaluator: ", chief,
                                 "} puts it there"));
  return lines;
}

std::vector<std::string> ExperimentHosts::MayMoveTo(const TaskId& task) const {
  const bool needs_output = task == run_.chief || task.job == kEvaluatorJob;
  const auto sees_output = [&](const std::string& host) {
    const auto code = placed_.find(host);
    return code != placed_.end() && code->second.output.empty();
  };
  if (needs_output && !sees_output(run_.plan.placement.at(task))) return {};
  std::vector<std::string> hosts;
  for (const auto& [host, code] : placed_)
    if (!needs_output || sees_output(host)) hosts.push_back(host);
  return hosts;
}

std::string ExperimentHosts::WorkOn(const std::string& host) const {
  const std::string& copied = placed_.at(host).work;
  return copied.empty() ? run_.work : copied;
}

void ExperimentHosts::Place(ExperimentPlan& plan) const {
  for (PlannedTask& planned : plan.tasks) {
    const std::string& host = run_.plan.placement.at(planned.process.task);
    const PlacedCode& code = placed_.at(host);
    planned.process.directory = WorkOn(host);
    if (code.output.empty()) continue;
    for (auto& [name, value] : planned.process.environment)
      if (name == kOutputVariable) value = code.output;
  }
}

std::vector<std::string> ExperimentHosts::FetchOutput() {
  OutputFetchOrder order{
      .hosts = {}, .to = run_.output_dir, .umask = run_.users_umask, .environment = {{kRunIdVariable, run_.run_id}}};
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const auto code = placed_.find(hosts_[i]);
    if (code != placed_.end() && !code->second.output.empty())
      order.hosts.push_back({.index = static_cast<int>(i), .host = hosts_[i], .folder = code->second.output});
  }
  if (order.hosts.empty()) return {};
  // The chief's last: what it has written counts.
  const std::string& chief = run_.plan.placement.at(run_.chief);
  std::stable_partition(order.hosts.begin(), order.hosts.end(),
                        [&](const OutputFetchOrder::From& from) { return from.host != chief; });
  fetch_.emplace(std::move(order), tasks_);
  std::vector<std::string> lines = fetch_->Run();
  if (fetch_->Has(chief)) unlink(run_.elsewhere_file.c_str());
  fetch_.reset();
  return lines;
}

}  // namespace muster
