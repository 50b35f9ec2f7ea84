#include "muster/launch/registry/former_attempt.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/index_refresh.h"
#include "muster/launch/registry/registry_rows.h"
#include "muster/launch/registry/sqlite.h"
#include "muster/launch/registry/state_change.h"

namespace muster {
namespace {

// Long enough for what a command that was killed has left.
constexpr absl::Duration kLockPatience = absl::Seconds(35);
static_assert(kLockPatience > ExclusiveFile::kStale);

absl::Status NoAttemptBefore(const ExperimentId& id) {
  return absl::FailedPreconditionError(absl::StrCat("experiment ", id.ToString(), " had no attempt before"));
}

// Returns how an attempt ended: a record has the run's whole row, and the rows of the tasks that changed.
absl::StatusOr<RunChange> EndOfAttempt(const Home& home, const ExperimentId& id, int attempt) {
  ASSIGN_OR_RETURN(const ReadRecords read, ReadRecordsFrom(home.records(id), 0));
  RunChange end;
  for (const std::string& text : read.records) {
    ASSIGN_OR_RETURN(RunChange change, ParseRecordText(text));
    if (change.run.attempt != attempt) continue;
    end.run = change.run;
    for (TaskRecord& task : change.tasks) {
      const auto known = std::find_if(end.tasks.begin(), end.tasks.end(),
                                      [&task](const TaskRecord& one) { return one.task == task.task; });
      if (known == end.tasks.end()) {
        end.tasks.push_back(std::move(task));
      } else {
        *known = std::move(task);
      }
    }
  }
  end.run.id = id;
  return HasEnded(end.run.state) ? absl::StatusOr<RunChange>(std::move(end)) : NoAttemptBefore(id);
}

}  // namespace

absl::StatusOr<ExclusiveFile> TakeAskedRuns(const Home& home, int64_t number) {
  return ExclusiveFile::Take(home.experiment_lock(number), kLockPatience);
}

absl::Status KeepFormer(const Home& home, int64_t number) {
  ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().ReadFile(home.experiment_file(number)));
  return ReplaceFile(home.former_file(number), text, Durability::kProcess);
}

absl::StatusOr<FormerAttempt> ReadFormer(const Home& home, const ExperimentId& id, int present) {
  const absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(home.former_file(id.number));
  if (absl::IsNotFound(text.status())) return NoAttemptBefore(id);
  RETURN_IF_ERROR(text.status());
  FormerAttempt former;
  ASSIGN_OR_RETURN(former.file, ParseExperimentText(*text));
  const auto asked = std::find_if(former.file.runs.begin(), former.file.runs.end(),
                                  [&id](const AskedRun& one) { return one.run == id.run; });
  if (asked == former.file.runs.end() || asked->attempt >= present) return NoAttemptBefore(id);
  former.asked = *asked;
  ASSIGN_OR_RETURN(former.end, EndOfAttempt(home, id, asked->attempt));
  return former;
}

// What is brought back counts as one more attempt, so that every host's index takes it for news.
absl::Status Registry::TakeRestartBack(const ExperimentId& id) {
  ASSIGN_OR_RETURN(const ExclusiveFile alone, TakeAskedRuns(home_, id.number));
  RETURN_IF_ERROR(Freshen(id.number));
  ASSIGN_OR_RETURN(StateChange change, BeginChange(Durability::kDisk));
  ASSIGN_OR_RETURN(const RunRecord present, Run(id));
  ASSIGN_OR_RETURN(FormerAttempt former, ReadFormer(home_, id, present.attempt));
  if (!former.file.experiment.grid) {
    ASSIGN_OR_RETURN(SqliteStatement update,
                     database_->Prepare("UPDATE experiments SET project = ?, folder = ?, tree = ?, runs = ?,"
                                        " file_name = ?, options = ?, environment = ?, file_text = ?"
                                        " WHERE number = ?"));
    BindSpecification(update, former.file.experiment, 0);
    RETURN_IF_ERROR(update.BindInt(id.number).Run());
  }
  former.asked.attempt = present.attempt + 1;
  RETURN_IF_ERROR(ApplyAskedRun(*database_, id.number, former.asked));
  RETURN_IF_ERROR(change.WriteExperiment(id.number));
  // The records of the attempts before stay.
  RETURN_IF_ERROR(refresh_->One(id.number, id.run));
  former.end.run.attempt = former.asked.attempt;
  former.end.run.run_id.clear();  // what was left of it was ended before the Restart
  RETURN_IF_ERROR(ApplyChange(*database_, id, former.end, /*leases=*/false));
  std::vector<TaskId> tasks;
  for (const TaskRecord& task : former.end.tasks) tasks.push_back(task.task);
  RETURN_IF_ERROR(change.WriteRecord(id, tasks));
  return change.Commit(clock_.Now());
}

}  // namespace muster
