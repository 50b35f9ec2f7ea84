#include "muster/cluster/task_id.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/device.h"
#include "muster/cluster/quoted.h"

namespace muster {

std::string TaskId::ToString() const { return absl::StrCat(job, ":", index); }

std::string TaskId::ToDevice() const { return absl::StrCat("/job:", job, "/task:", index); }

absl::StatusOr<TaskId> TaskId::Parse(std::string_view text) {
  TaskId task;
  if (text.find('/') != std::string_view::npos) {
    ASSIGN_OR_RETURN(DeviceSpec device, DeviceSpec::Parse(text));
    if (!device.job || !device.task) {
      return absl::InvalidArgumentError(
          absl::StrCat("task ", Quoted(text), " lacks its job or its number; accepted: worker:1, /job:worker/task:1"));
    }
    task = {*device.job, *device.task};
  } else {
    size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("task ", Quoted(text), " has no \":\"; accepted: worker:1, /job:worker/task:1"));
    }
    ASSIGN_OR_RETURN(task.index, ParseTaskIndex(text.substr(colon + 1)));
    task.job = std::string(text.substr(0, colon));
  }
  RETURN_IF_ERROR(ValidateJobName(task.job));
  return task;
}

absl::StatusOr<int> ParseTaskIndex(std::string_view text) {
  int index = 0;
  bool digits = !text.empty() && text.size() <= 9;
  for (char c : text) digits = digits && absl::ascii_isdigit(static_cast<unsigned char>(c));
  if (!digits || !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &index) || index > kMaxTaskIndex) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), " is not a task index; accepted: a whole number from 0 to ", kMaxTaskIndex));
  }
  return index;
}

absl::Status ValidateJobName(std::string_view job) {
  bool good = !job.empty() && job.size() <= 63 && absl::ascii_isalpha(static_cast<unsigned char>(job.front()));
  for (char c : job)
    good = good && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.');
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(job),
      " is not a job name; accepted: at most 63 letters, digits, \"_\", \"-\", \".\", beginning with a letter"));
}

}  // namespace muster
