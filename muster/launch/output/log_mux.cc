#include "muster/launch/output/log_mux.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Cyan, green, yellow, magenta, blue and their bright forms; red is left for what the reader takes for an error.
constexpr const char* kColors[] = {"36", "32", "33", "35", "34", "96", "92", "93", "95", "94"};

constexpr absl::Duration kBetweenLiveStates = absl::Seconds(1);

std::string Prefix(const std::string& name, const char* color) {
  if (color == nullptr) return absl::StrCat("[", name, "] ");
  return absl::StrCat("\x1b[", color, "m[", name, "]\x1b[0m ");
}

size_t IndexOf(OutputStream stream) { return stream == OutputStream::kStdout ? 0 : 1; }

}  // namespace

LogMux::LogMux(const LogMuxOptions& options, FileSystem& files, Sink sink, const Clock& clock)
    : options_(options), files_(files), sink_(std::move(sink)), clock_(clock) {}

absl::Status LogMux::AddTask(const TaskId& task) {
  const std::string name = task.ToString();
  const char* color = kColors[tasks_.size() % std::size(kColors)];
  Task added;
  for (LineCutter& lines : added.lines) lines = LineCutter(options_.max_line_bytes);
  added.prefix[0] = Prefix(name, options_.color_stdout ? color : nullptr);
  added.prefix[1] = Prefix(name, options_.color_stderr ? color : nullptr);
  if (!options_.log_dir.empty()) {
    RETURN_IF_ERROR(files_.CreateDirectory(options_.log_dir));
    const std::string path = JoinPath(options_.log_dir, absl::StrCat(task.job, "-", task.index, ".log"));
    ASSIGN_OR_RETURN(added.log, files_.CreateFile(path));
  }
  tasks_.insert_or_assign(task, std::move(added));
  return absl::OkStatus();
}

void LogMux::Take(const TaskId& task, OutputStream stream, std::string_view bytes) {
  Task& from = tasks_.at(task);
  const std::string& prefix = from.prefix[IndexOf(stream)];
  std::string out;
  from.lines[IndexOf(stream)].Add(bytes, [&](std::string_view line) { TakeLine(from, line, prefix, out); });
  if (IsLiveDue(from, stream)) {
    out.append(prefix).append(from.lines[IndexOf(stream)].overwritten()).append("\n");
    from.live_at = clock_.Now();
  }
  if (!out.empty()) sink_(stream, out);
}

bool LogMux::IsLiveDue(const Task& task, OutputStream stream) const {
  const bool live = stream == OutputStream::kStdout ? options_.live_stdout : options_.live_stderr;
  return live && !task.lines[IndexOf(stream)].overwritten().empty() &&
         clock_.Now() - task.live_at >= kBetweenLiveStates;
}

void LogMux::Finish(const TaskId& task) {
  Task& from = tasks_.at(task);
  for (const OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) {
    std::string out;
    const std::string& prefix = from.prefix[IndexOf(stream)];
    from.lines[IndexOf(stream)].Finish([&](std::string_view line) { TakeLine(from, line, prefix, out); });
    if (out.empty()) continue;
    sink_(stream, out);
  }
  if (from.log == nullptr) return;
  const absl::Status closed = from.log->Close();
  from.log.reset();
  if (!closed.ok()) Say(absl::StrCat("the log of ", task.ToString(), " is not complete: ", closed.ToString()));
}

void LogMux::Say(std::string_view line) {
  sink_(OutputStream::kStderr,
        absl::StrCat(Prefix("muster", options_.color_stderr ? "1" : nullptr), std::string(line), "\n"));
}

void LogMux::TakeLine(Task& task, std::string_view line, const std::string& prefix, std::string& out) {
  out.append(prefix).append(line).append("\n");
  task.last_lines.emplace_back(line);
  if (task.last_lines.size() > options_.last_lines) task.last_lines.pop_front();
  if (task.log != nullptr) WriteLog(task, line);
}

void LogMux::WriteLog(Task& task, std::string_view line) {
  const std::string text = absl::StrCat(std::string(line), "\n");
  const absl::Status written = task.log->Append(AsBytes(text.data(), text.size()));
  if (written.ok()) return;
  task.log.reset();  // reports only the first failure
  Say(absl::StrCat("stopped writing logs to ", options_.log_dir, ": ", written.ToString()));
}

}  // namespace muster
