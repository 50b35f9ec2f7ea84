#include "muster/launch/experiment/task_logs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/task_log/live_state.h"
#include "muster/launch/task_log/log_stream.h"

namespace muster {
namespace {

constexpr absl::Duration kBetweenLiveStates = absl::Seconds(1);
constexpr size_t kPieceOfLog = 64 << 10;
// States of the task, behind its last lines.
constexpr int kMostOfOtherKinds = 8;

size_t CutterOf(OutputStream stream) { return stream == OutputStream::kStdout ? 0 : 1; }

LogKind KindOf(OutputStream stream) { return stream == OutputStream::kStdout ? LogKind::kStdout : LogKind::kStderr; }

}  // namespace

void TaskLogs::Take(const TaskId& task, OutputStream stream, std::string_view bytes) {
  Log& log = Of(LabelOf(task));
  const size_t which = CutterOf(stream);
  LineCutter& lines = log.lines[which];
  if (const size_t end = bytes.rfind('\n'); end != std::string_view::npos)
    log.whole[which] = log.taken[which] + end + 1;
  log.taken[which] += bytes.size();
  lines.Add(bytes, [&](std::string_view line) { AddLine(log, stream, line); });
  if (!lines.overwritten().empty()) MustFlush(log);
}

void TaskLogs::Finish(const TaskId& task) {
  Log& log = Of(LabelOf(task));
  for (const OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr})
    log.lines[CutterOf(stream)].Finish([&](std::string_view line) { AddLine(log, stream, line); });
  for (uint64_t* const bytes : {log.taken, log.whole}) bytes[0] = bytes[1] = 0;
}

void TaskLogs::Skip(const TaskId& task, OutputStream stream, uint64_t bytes) {
  Of(LabelOf(task)).taken[CutterOf(stream)] += bytes;
}

std::optional<LoggedOutput> TaskLogs::Logged(const TaskId& task) const {
  const auto log = logs_.find(LabelOf(task));
  if (log == logs_.end()) return LoggedOutput();
  if (log->second.file->waits()) return std::nullopt;
  const LogPlace end = log->second.file->end();
  return LoggedOutput{.out = log->second.whole[0],
                      .err = log->second.whole[1],
                      .end = end == LogPlace() ? log->second.end_before : end};
}

LoggedOutput TaskLogs::GoOn(const TaskId& task, const LoggedOutput& known) {
  Log& log = Of(LabelOf(task));
  const LoggedOutput logged = CountLogged(log.folder, known);
  log.taken[0] = log.whole[0] = logged.out;
  log.taken[1] = log.whole[1] = logged.err;
  log.end_before = logged.end;
  ReadLastLines(log);
  return logged;
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
  for (Log* log : unflushed_) {
    if (log == last) continue;
    log->file->Flush();
    ShowLive(*log);
  }
  if (last != nullptr && last->unflushed) last->file->Flush();
  for (Log* log : unflushed_) log->unflushed = false;
  unflushed_.clear();
}

std::deque<std::string> TaskLogs::LastLines(const TaskId& task) const {
  const auto log = logs_.find(LabelOf(task));
  return log == logs_.end() ? std::deque<std::string>() : log->second.last_lines;
}

void TaskLogs::ReadLastLines(Log& log) const {
  LogStream stream(log.folder, "");
  stream.StartAtLast(static_cast<int>(options_.last_lines) + kMostOfOtherKinds);
  while (stream.Advance(kPieceOfLog)) {
    const LogLineRecord& line = stream.line();
    if (line.kind == LogKind::kStdout || line.kind == LogKind::kStderr) KeepAsLast(log, line.text);
  }
}

TaskLogs::Log& TaskLogs::Of(const std::string& folder) {
  Log& log = logs_[folder];
  if (log.file == nullptr) {
    log.folder = absl::StrCat(options_.folder, "/", folder);
    log.file = std::make_unique<TaskLog>(TaskLogOptions{.folder = log.folder, .most_bytes = options_.most_bytes});
  }
  return log;
}

void TaskLogs::Add(Log& log, LogKind kind, std::string_view text) {
  log.file->Add(clock_.Now(), kind, text);
  MustFlush(log);
}

void TaskLogs::MustFlush(Log& log) {
  if (!std::exchange(log.unflushed, true)) unflushed_.push_back(&log);
}

void TaskLogs::ShowLive(Log& log) const {
  const absl::Time now = clock_.Now();
  LogLineFormat format;
  std::string lines;
  for (const OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr})
    if (const std::string_view state = log.lines[CutterOf(stream)].overwritten(); !state.empty())
      format.Append(now, KindOf(stream), state, lines);
  if (lines.empty() ? !log.has_live : now - log.live_at < kBetweenLiveStates) return;
  WriteLiveState(log.folder, lines);
  log.has_live = !lines.empty();
  if (log.has_live) log.live_at = now;
}

void TaskLogs::AddLine(Log& log, OutputStream stream, std::string_view line) {
  Add(log, KindOf(stream), line);
  KeepAsLast(log, line);
}

void TaskLogs::KeepAsLast(Log& log, std::string_view line) const {
  log.last_lines.emplace_back(line);
  if (log.last_lines.size() > options_.last_lines) log.last_lines.pop_front();
}

}  // namespace muster
