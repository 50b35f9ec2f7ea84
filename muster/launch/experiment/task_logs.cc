#include "muster/launch/experiment/task_logs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/launch/registry/experiment_id.h"

namespace muster {
namespace {

size_t CutterOf(OutputStream stream) { return stream == OutputStream::kStdout ? 0 : 1; }

}  // namespace

void TaskLogs::Take(const TaskId& task, OutputStream stream, std::string_view bytes) {
  Log& log = Of(LabelOf(task));
  log.lines[CutterOf(stream)].Add(bytes, [&](std::string_view line) { AddLine(log, stream, line); });
}

void TaskLogs::Finish(const TaskId& task) {
  Log& log = Of(LabelOf(task));
  for (const OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr})
    log.lines[CutterOf(stream)].Finish([&](std::string_view line) { AddLine(log, stream, line); });
}

void TaskLogs::AddState(const TaskId& task, RunState state) { Add(Of(LabelOf(task)), LogKind::kState, Name(state)); }

void TaskLogs::AddState(RunState state) { Add(Of(kExperimentLog), LogKind::kState, Name(state)); }

void TaskLogs::Say(std::string_view text) {
  Log& log = Of(kExperimentLog);
  LineCutter lines;
  const auto add = [&](std::string_view line) { Add(log, LogKind::kMuster, line); };
  lines.Add(text, add);
  lines.Finish(add);
}

void TaskLogs::Flush() {
  const auto own = logs_.find(kExperimentLog);
  Log* const last = own == logs_.end() ? nullptr : &own->second;
  for (Log* log : unflushed_)
    if (log != last) log->file->Flush();
  if (last != nullptr && last->unflushed) last->file->Flush();
  for (Log* log : unflushed_) log->unflushed = false;
  unflushed_.clear();
}

std::deque<std::string> TaskLogs::LastLines(const TaskId& task) const {
  const auto log = logs_.find(LabelOf(task));
  return log == logs_.end() ? std::deque<std::string>() : log->second.last_lines;
}

TaskLogs::Log& TaskLogs::Of(const std::string& folder) {
  Log& log = logs_[folder];
  if (log.file == nullptr)
    log.file = std::make_unique<TaskLog>(
        TaskLogOptions{.folder = absl::StrCat(options_.folder, "/", folder), .most_bytes = options_.most_bytes});
  return log;
}

void TaskLogs::Add(Log& log, LogKind kind, std::string_view text) {
  log.file->Add(clock_.Now(), kind, text);
  if (!std::exchange(log.unflushed, true)) unflushed_.push_back(&log);
}

void TaskLogs::AddLine(Log& log, OutputStream stream, std::string_view line) {
  Add(log, stream == OutputStream::kStdout ? LogKind::kStdout : LogKind::kStderr, line);
  log.last_lines.emplace_back(line);
  if (log.last_lines.size() > options_.last_lines) log.last_lines.pop_front();
}

}  // namespace muster
