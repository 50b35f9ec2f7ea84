#include "muster/launch/experiment/run_progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstWritePause = absl::Seconds(1);
constexpr absl::Duration kLongestWritePause = absl::Minutes(1);

bool StaysOrFollows(RunState before, RunState after) { return before == after || MayFollow(before, after); }

// Returns whether the registry has rejected the write for good, so that retrying is useless.
bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

void RunProgress::Add(const TaskId& task) {
  places_[task] = tasks_.size();
  tasks_.push_back({.task = task, .state = RunState::kCreated, .since = clock_.Now()});
  logs_.AddState(task, RunState::kCreated);
}

void RunProgress::Keep(const TaskRecord& record) {
  places_[record.task] = tasks_.size();
  tasks_.push_back(record);
  written_tasks_.push_back(record);
}

TaskRecord& RunProgress::task(const TaskId& task) {
  const auto place = places_.find(task);
  MUSTER_CHECK(place != places_.end());
  return tasks_[place->second];
}

std::vector<TaskId> RunProgress::OpenTasks() const {
  std::vector<TaskId> open;
  for (const TaskRecord& record : tasks_)
    if (!HasEnded(record.state)) open.push_back(record.task);
  return open;
}

void RunProgress::SetRun(RunState state) {
  if (run_.state == state) return;
  run_.state = state;
  if (!HasEnded(state)) run_.reason.clear();
  logs_.AddState(state);
}

void RunProgress::SetTask(const TaskId& task, RunState state) {
  TaskRecord& record = this->task(task);
  if (record.state == state) return;
  record.state = state;
  record.since = clock_.Now();
  logs_.AddState(task, state);
}

void RunProgress::Commit() {
  // A reader on another host stops at the end that is recorded, so all lines must be there by then.
  if (HasEnded(run_.state)) logs_.Flush();
  Snapshot now{run_, tasks_};
  // Merges snapshots, so that a task that is restarted again and again while the disk is full can't fill the memory.
  const size_t waiting = waiting_.size();
  if (waiting >= 2 && Fits(waiting_[waiting - 2], now)) waiting_.pop_back();
  waiting_.push_back(std::move(now));
  if (waiting == 0) WriteWaiting();
}

void RunProgress::OnTime() {
  if (clock_.Now() >= retry_at_) WriteWaiting();
}

bool RunProgress::Fits(const Snapshot& before, const Snapshot& after) {
  return before.tasks.size() == after.tasks.size() && StaysOrFollows(before.run.state, after.run.state) &&
         std::equal(before.tasks.begin(), before.tasks.end(), after.tasks.begin(),
                    [](const TaskRecord& a, const TaskRecord& b) { return StaysOrFollows(a.state, b.state); });
}

std::vector<TaskRecord> RunProgress::ChangedTasks(const Snapshot& snapshot) const {
  std::vector<TaskRecord> changed;
  for (size_t i = 0; i < snapshot.tasks.size(); ++i)
    if (i >= written_tasks_.size() || snapshot.tasks[i] != written_tasks_[i]) changed.push_back(snapshot.tasks[i]);
  return changed;
}

void RunProgress::WriteWaiting() {
  while (!waiting_.empty()) {
    const absl::Status written = write_(waiting_.front().run, ChangedTasks(waiting_.front()));
    if (!written.ok() && !IsRefusal(written)) {
      if (retry_at_ == absl::InfiniteFuture())
        logs_.Say(absl::StrCat("the registry can't be written now, retrying: ", std::string(written.message())));
      pause_ = retry_at_ == absl::InfiniteFuture() ? kFirstWritePause : std::min(2 * pause_, kLongestWritePause);
      retry_at_ = clock_.Now() + pause_;
      return;
    }
    if (written.ok()) {
      written_tasks_ = std::move(waiting_.front().tasks);
    } else {
      logs_.Say(absl::StrCat("the registry refuses a state: ", std::string(written.message())));
    }
    waiting_.pop_front();
  }
  retry_at_ = absl::InfiniteFuture();
}

}  // namespace muster
