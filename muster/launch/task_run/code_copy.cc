#include "muster/launch/task_run/code_copy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/project/decimal_size.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

constexpr size_t kMostStderr = 4096;  // of a task's stderr
constexpr size_t kLargestShown = 5;
constexpr int64_t kQuickCopy = 20'000'000;

std::vector<ProjectFile> LargestOf(const ProjectFiles& files) {
  std::vector<ProjectFile> largest = files.files;
  std::erase_if(largest, [](const ProjectFile& file) { return file.bytes == 0; });
  std::stable_sort(largest.begin(), largest.end(),
                   [](const ProjectFile& one, const ProjectFile& other) { return one.bytes > other.bytes; });
  if (largest.size() > kLargestShown) largest.resize(kLargestShown);
  return largest;
}

}  // namespace

CodeCopy::CodeCopy(CodeCopyOrder order, const DescribedTree& tree, TaskRun& tasks)
    : order_(std::move(order)), tasks_(tasks) {
  TreeSenderOptions options{
      .job = order_.job, .see_paths = order_.see_paths, .nonce = order_.nonce, .output_name = order_.output_name};
  const TreeSenderOptions of_others = options;
  options.output_before = order_.output_before;
  options.output_next = order_.output_next;
  options.output_anew = order_.output_anew;
  for (const std::string& name : order_.hosts)
    hosts_.push_back({.name = name,
                      .sender = TreeSender(name == order_.output_host ? options : of_others, tree),
                      .left_out = order_.left_out.contains(name),
                      .failed = {},
                      .stderr_text = ""});
}

absl::StatusOr<std::map<std::string, PlacedCode>> CodeCopy::Run() {
  std::vector<ProcessSpec> processes;
  for (size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i].left_out)
      processes.push_back({.task = {kReceiveJob, static_cast<int>(i)},
                           .arguments = {"muster", "receive"},
                           .environment = order_.environment,
                           .takes_input = true});
  absl::Status launched = tasks_.Launch(std::move(processes));
  // The caller takes ResourceExhausted for this machine's disk.
  if (absl::IsResourceExhausted(launched)) launched = absl::UnavailableError(launched.message());
  RETURN_IF_ERROR(launched);
  for (size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i].left_out) GiveInput({kReceiveJob, static_cast<int>(i)}, hosts_[i]);
  // One that fails doesn't end the others: all that is wrong is said at once.
  tasks_.Supervise(
      {.rule = EndRule::kChiefDecides, .changed = [this](const TaskId& task, TaskChange, const ExitStatus& status) {
         hosts_.at(task.index).how = status.ToString();
       }});
  tasks_.ForgetTasks();
  if (tasks_.interrupts() > 0) return absl::CancelledError("interrupted");
  std::map<std::string, PlacedCode> placed;
  std::vector<std::string> lines;
  for (const Host& host : hosts_) {
    if (host.left_out) continue;
    const absl::Status why = WhyNot(host);
    if (!why.ok() && order_.optional.contains(host.name)) {
      RETURN_IF_ERROR(tasks_.LeaveOut(host.name, OneLine(std::string(why.message()))));
      continue;
    }
    if (!why.ok()) lines.push_back(absl::StrCat(host.name, ": ", OneLine(std::string(why.message()))));
    placed[host.name] = {.work = host.sender.work(),
                         .seen = host.sender.seen(),
                         .output = host.sender.output(),
                         .output_is_other = host.sender.output_is_other(),
                         .files = host.sender.files_sent(),
                         .bytes = host.sender.bytes_sent()};
  }
  if (!lines.empty()) return absl::UnavailableError(absl::StrJoin(lines, "\n"));
  return placed;
}

void CodeCopy::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  Host& host = hosts_.at(task.index);
  if (stream == OutputStream::kStderr) {
    host.stderr_text += bytes.substr(0, kMostStderr - std::min(kMostStderr, host.stderr_text.size()));
    return;
  }
  if (host.ended) return;
  host.failed = host.sender.Take(bytes);
  GiveInput(task, host);
}

void CodeCopy::GiveInput(const TaskId& task, Host& host) {
  while (!host.ended && host.failed.ok()) {
    absl::StatusOr<std::string> next = host.sender.Next();
    host.failed = next.status();
    if (!next.ok() || next->empty()) break;
    tasks_.Input(task, *next);
  }
  if (host.ended || (host.failed.ok() && !host.sender.done())) return;
  host.ended = true;
  tasks_.Input(task, "");
}

absl::Status CodeCopy::WhyNot(const Host& host) const {
  if (!host.failed.ok() || host.sender.done()) return host.failed;
  return absl::UnavailableError(absl::StrCat("`muster receive` ", host.how, " before it had the code",
                                             host.stderr_text.empty() ? "" : ": ", host.stderr_text));
}

std::vector<std::string> HostsWithTasks(const HostPlan& plan) {
  std::set<std::string> used = plan.optional_hosts;
  for (const auto& [task, host] : plan.placement) used.insert(host);
  std::vector<std::string> names;
  for (const Host& host : plan.hosts)
    if (used.contains(host.name)) names.push_back(host.name);
  return names;
}

HostPlan WithTransfers(HostPlan plan) {
  int index = 0;
  for (const std::string& host : HostsWithTasks(plan)) {
    plan.placement[{kReceiveJob, index}] = host;
    plan.placement[{kSetupJob, index}] = host;
    plan.placement[{kSendJob, index++}] = host;
  }
  return plan;
}

std::string CopyAheadText(const DescribedTree& tree) {
  int64_t bytes = 0;
  for (const TreeFile& file : tree.files) bytes += file.file.bytes;
  return bytes < kQuickCopy ? "" : absl::StrCat("copying up to ", DecimalSize(bytes), " of code to each host");
}

std::string CopyText(const ProjectFiles& files) {
  std::string text =
      absl::StrCat("code for each host: ", files.files.size(), files.files.size() == 1 ? " file" : " files", ", ",
                   DecimalSize(files.bytes), ", of which only what it lacks is copied\n");
  for (const ProjectFile& file : LargestOf(files))
    absl::StrAppend(&text, "  ", DecimalSize(file.bytes), "  ", file.path, "\n");
  return text;
}

absl::Status CheckCodeSize(const ProjectFiles& files, int64_t limit) {
  if (files.bytes <= limit) return absl::OkStatus();
  std::vector<std::string> largest;
  for (const ProjectFile& file : LargestOf(files))
    largest.push_back(absl::StrCat(file.path, " (", DecimalSize(file.bytes), ")"));
  return absl::InvalidArgumentError(absl::StrCat(
      "the code for each host is ", DecimalSize(files.bytes), ", most of it in ", absl::StrJoin(largest, ", "),
      "; accepted is ", MemoryText(limit), ": name in .musterignore what hosts don't need, or raise --code_limit"));
}

}  // namespace muster
