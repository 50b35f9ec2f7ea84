#include "muster/launch/registry/experiment_id.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// Limits the numbers of experiments and runs so that they fit into an int without overflow checks.
constexpr size_t kMostIdDigits = 9;

// Accepts numbers above 0, in one spelling only, because folders are named after them. Returns 0 if it isn't a number.
int ParseIdNumber(absl::string_view text) {
  if (text.empty() || text.size() > kMostIdDigits || text[0] == '0') return 0;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return 0;
  }
  int number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

// Returns whether an experiment has at most one task of this job, which then needs no number.
bool IsJobOfOneTask(absl::string_view job) {
  return job == kMasterJob || job == kChiefJob || job == kEvaluatorJob || job == kBuildJob || job == "tensorboard";
}

absl::Status WrongIdError(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text),
                   " is not the id of an experiment; accepted: a number from 1 (\"4\"), or those of a grid and its run"
                   " (\"4.3\")"));
}

absl::Status WrongNameError(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(text),
      " names neither an experiment nor a task; accepted: an experiment (\"4\"), a run of a grid"
      " (\"4.3\"), a task of either (\"4.master\", \"4.build\", \"4.worker.2\", \"4.3.ps.1\"; counted from 1)"));
}

}  // namespace

std::string ExperimentId::ToString() const { return run == 0 ? absl::StrCat(number) : absl::StrCat(number, ".", run); }

absl::StatusOr<ExperimentId> ExperimentId::Parse(std::string_view text) {
  const absl::StatusOr<ExperimentName> name = ExperimentName::Parse(text);
  if (!name.ok() || name->task.has_value()) return WrongIdError(text);
  return name->id;
}

std::string LabelOf(const TaskId& task) {
  if (task.index == 0 && IsJobOfOneTask(task.job)) return task.job;
  return absl::StrCat(task.job, ".", task.index + 1);
}

std::string FullName(const ExperimentId& id, const TaskId& task) {
  return absl::StrCat(id.ToString(), ".", LabelOf(task));
}

absl::StatusOr<ExperimentName> ExperimentName::Parse(std::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(AbslView(text), '.');
  ExperimentName name;
  name.id.number = ParseIdNumber(parts[0]);
  if (name.id.number == 0) return WrongNameError(text);
  size_t next = 1;
  if (next < parts.size()) {
    name.id.run = ParseIdNumber(parts[next]);
    if (name.id.run > 0) ++next;
  }
  if (next == parts.size()) return name;

  TaskId task{std::string(parts[next]), 0};
  if (!ValidateJobName(task.job).ok()) return WrongNameError(text);
  ++next;
  if (next < parts.size()) {
    const int number = ParseIdNumber(parts[next]);
    if (number == 0 || number - 1 > kMaxTaskIndex || next + 1 != parts.size()) return WrongNameError(text);
    task.index = number - 1;
  } else if (!IsJobOfOneTask(task.job)) {
    return WrongNameError(text);
  }
  name.task = task;
  return name;
}

}  // namespace muster
