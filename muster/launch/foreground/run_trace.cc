#include "muster/launch/foreground/run_trace.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/observe/trace_merge.h"
#include "muster/observe/trace_summary.h"

namespace muster {

absl::StatusOr<RunTrace> RunTrace::Begin(FileSystem& files, const std::string& file, const std::string& run_id) {
  // Reports an unwritable file now, not after hours of training.
  auto opened = files.OpenForWriting(file);
  absl::Status writable = opened.status();
  if (writable.ok()) writable = (*opened)->Close();
  const std::string folder = absl::StrCat(file, ".parts-", run_id);
  if (writable.ok()) writable = files.CreateDirectory(folder);
  if (!writable.ok()) return absl::InvalidArgumentError(absl::StrCat("--trace: ", writable.message()));
  return RunTrace(files, file, folder);
}

std::string RunTrace::parts() const { return JoinPath(folder_, "part"); }

void RunTrace::NewLife(const TaskId& task) {
  const std::string part = TracePartOf(parts(), task);
  if (files_->Exists(part)) files_->Rename(part, absl::StrCat(part, ".", ++lives_)).IgnoreError();
}

void RunTrace::Finish(const std::function<void(const std::string& line)>& say) {
  const absl::Status merged = Merge(say);
  if (!merged.ok()) {
    say(absl::StrCat("the run has no trace: ", merged.message(), "; its parts are in ", folder_));
    return;
  }
  files_->RemoveTree(folder_).IgnoreError();
}

absl::Status RunTrace::Merge(const std::function<void(const std::string& line)>& say) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->ListDirectory(folder_));
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(JoinPath(folder_, name));
  if (parts.empty())
    return absl::NotFoundError("no task has written a part (is PROGRAM a muster program? See docs/observe.md)");
  ASSIGN_OR_RETURN(const std::vector<MergedTask> tasks, MergeTrace(*files_, parts, file_));
  size_t events = 0;
  for (const MergedTask& task : tasks) events += task.events;
  say(absl::StrCat("the trace of ", tasks.size(), " processes, ", events, " events, is ", file_,
                   " (open it in chrome://tracing or ui.perfetto.dev); where the time of the steps went:"));
  ASSIGN_OR_RETURN(const std::string trace, files_->ReadFile(file_));
  ASSIGN_OR_RETURN(const std::vector<StepTimesTable> tables, SummarizeTrace(trace));
  for (const StepTimesTable& table : tables)
    for (const absl::string_view line : absl::StrSplit(StepTimesText(table), '\n', absl::SkipEmpty()))
      say(std::string(line));
  return absl::OkStatus();
}

}  // namespace muster
