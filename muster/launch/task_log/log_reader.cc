#include "muster/launch/task_log/log_reader.h"

#include <algorithm>
#include <filesystem>
#include <queue>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/task_log/live_state.h"
#include "muster/launch/task_log/log_stream.h"

namespace muster {
namespace {

// Memory for the pieces of all tasks together, as long as each can have the least piece.
constexpr size_t kLogReaderMemory = 16 << 20;
constexpr size_t kLogReaderLeastPiece = 4 << 10;
constexpr size_t kLogReaderMostPiece = 64 << 10;

}  // namespace

struct LogReader::Impl {
  Impl(std::vector<Source> folders, std::vector<std::string> only, LogWatch::IsLocal is_local);

  absl::Status ReadMore(const std::function<void(const LogLineRecord& line)>& take);
  void ReadLive(const std::function<void(const LogLineRecord& line)>& take);

  LogWatch watch;
  bool paused = false;
  int last_lines = -1;
  size_t unwatched = 0;  // folders

 private:
  // A folder to check: one in which tasks' folders appear, or a task's.
  struct Folder {
    std::string path;
    bool look = true;
    bool watched = false;
    bool cannot_watch = false;
  };
  struct Logs {
    Folder folder;
    std::string prefix;
    std::set<std::string> tasks;  // names of known task folders
  };
  struct Task {
    Folder folder;
    std::unique_ptr<LogStream> stream;
    std::string name;
    bool look_live = true;
    absl::Time live_at = absl::InfinitePast();  // of the newest state that was taken
  };

  absl::Status Poll();
  absl::Status Advance(Task& task) const;
  void CheckChanges();
  void WatchFolder(Folder& folder, size_t key, bool files);
  void FindTasks(Logs& logs);
  void AddTask(Logs& logs, const std::string& name);
  bool IsWanted(const std::string& task) const { return only_.empty() || only_.contains(task); }

  // Constant after construction.
  const std::set<std::string> only_;

  // Their indices are the keys of the watch: logs first, then tasks.
  std::vector<Logs> logs_;
  std::vector<Task> tasks_;
};

LogReader::Impl::Impl(std::vector<Source> folders, std::vector<std::string> only, LogWatch::IsLocal is_local)
    : watch(is_local), only_(only.begin(), only.end()) {
  for (Source& source : folders) {
    Logs logs;
    logs.folder.path = std::move(source.folder);
    logs.prefix = std::move(source.prefix);
    logs_.push_back(std::move(logs));
  }
}

void LogReader::Impl::CheckChanges() {
  std::vector<size_t> changed;
  const bool all = !watch.Changed(changed);
  for (const size_t key : changed) {
    if (key < logs_.size())
      logs_[key].folder.look = true;
    else
      tasks_[key - logs_.size()].folder.look = tasks_[key - logs_.size()].look_live = true;
  }
  if (!all) return;
  for (Logs& logs : logs_) logs.folder.look = true;
  for (Task& task : tasks_) task.folder.look = task.look_live = true;
}

// Must be called before the folder is checked, so that no later change is missed.
void LogReader::Impl::WatchFolder(Folder& folder, size_t key, bool files) {
  if (folder.watched || folder.cannot_watch) return;
  const LogWatch::Seen seen = watch.Add(folder.path, key, files);
  folder.watched = seen == LogWatch::Seen::kWatched;
  folder.cannot_watch = seen == LogWatch::Seen::kCannotWatch;
  if (folder.cannot_watch) ++unwatched;
}

void LogReader::Impl::FindTasks(Logs& logs) {
  const auto names = PosixFileSystem().ListDirectory(logs.folder.path);
  if (!names.ok()) return;  // missing as yet, or removed
  std::error_code error;
  for (const std::string& name : *names) {
    if (!IsWanted(name) || logs.tasks.contains(name)) continue;
    if (!std::filesystem::is_directory(JoinPath(logs.folder.path, name), error)) continue;
    logs.tasks.insert(name);
    AddTask(logs, name);
  }
}

void LogReader::Impl::AddTask(Logs& logs, const std::string& name) {
  Task task;
  task.folder.path = JoinPath(logs.folder.path, name);
  task.name = absl::StrCat(logs.prefix, name);
  task.stream = std::make_unique<LogStream>(task.folder.path, task.name);
  if (last_lines >= 0) task.stream->StartAtLast(last_lines);
  tasks_.push_back(std::move(task));
}

// Finds new tasks, and reads what is now visible of their lines.
absl::Status LogReader::Impl::Poll() {
  CheckChanges();
  for (size_t i = 0; i < logs_.size(); ++i) {
    Folder& folder = logs_[i].folder;
    if (!folder.look) continue;
    WatchFolder(folder, i, /*files=*/false);
    FindTasks(logs_[i]);
    folder.look = folder.cannot_watch;
  }
  last_lines = -1;
  absl::Status status;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    if (task.stream->has_line() || !task.folder.look) continue;
    WatchFolder(task.folder, logs_.size() + i, /*files=*/true);
    task.folder.look = task.folder.cannot_watch;
    status.Update(Advance(task));
  }
  return status;
}

absl::Status LogReader::Impl::Advance(Task& task) const {
  const size_t share = kLogReaderMemory / std::max<size_t>(tasks_.size(), 1);
  const size_t piece = std::clamp(share, kLogReaderLeastPiece, kLogReaderMostPiece);
  task.stream->Advance(piece);
  if (!task.stream->status().ok()) task.folder.look = true;
  return task.stream->status();
}

absl::Status LogReader::Impl::ReadMore(const std::function<void(const LogLineRecord& line)>& take) {
  absl::Status status;
  size_t known = 0;
  // While lines were read, tasks with earlier lines may have appeared.
  do {
    known = tasks_.size();
    status.Update(Poll());
  } while (tasks_.size() > known);

  // The next line of each task that has one, the earliest on top.
  using Next = std::pair<absl::Time, size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  const auto add = [&](size_t i) {
    const LogStream& stream = *tasks_[i].stream;
    if (stream.has_line()) next.emplace(stream.line().when, i);
  };
  for (size_t i = 0; i < tasks_.size(); ++i) add(i);
  paused = false;
  while (!next.empty() && !paused) {
    const size_t i = next.top().second;
    next.pop();
    take(tasks_[i].stream->line());
    status.Update(Advance(tasks_[i]));
    add(i);
  }
  return status;
}

void LogReader::Impl::ReadLive(const std::function<void(const LogLineRecord& line)>& take) {
  for (Task& task : tasks_) {
    if (!task.look_live) continue;
    task.look_live = task.folder.cannot_watch;
    const absl::Time seen = task.live_at;
    ReadLiveState(task.folder.path, [&](LogLineRecord line) {
      if (line.when <= seen) return;
      task.live_at = line.when;
      line.task = task.name;
      take(line);
    });
  }
}

LogReader::LogReader(std::vector<Source> folders, std::vector<std::string> only, LogWatch::IsLocal is_local)
    : impl_(std::make_unique<Impl>(std::move(folders), std::move(only), is_local)) {}

LogReader::~LogReader() = default;

absl::Status LogReader::ReadMore(const std::function<void(const LogLineRecord& line)>& take) {
  return impl_->ReadMore(take);
}

void LogReader::ReadLive(const std::function<void(const LogLineRecord& line)>& take) { impl_->ReadLive(take); }

void LogReader::Pause() { impl_->paused = true; }

int LogReader::wake_fd() const { return impl_->unwatched == 0 ? impl_->watch.fd() : -1; }

void LogReader::StartAtLast(int lines) { impl_->last_lines = lines; }

}  // namespace muster
