#include "muster/train/saving/lost_steps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/checkpoint/checkpoint_directory.h"

namespace muster {

absl::Status NamingLostSteps(const absl::Status& why, FileSystem& files, const std::string& checkpoint_dir,
                             int64_t global_step, bool is_chief) {
  const std::string begun = absl::StrCat(why.message(), "; at global step ", global_step, ", of which ");
  const auto not_seen = [&begun](const std::string& where) {
    return absl::UnavailableError(
        absl::StrCat(begun, "those since the chief's last checkpoint are lost; this task ", where));
  };
  if (checkpoint_dir.empty() && !is_chief) return not_seen("has no checkpoint_dir");
  if (checkpoint_dir.empty())
    return absl::UnavailableError(
        absl::StrCat(begun, "all are lost when the workers are started again: the session has no checkpoint_dir"));
  const auto newest = LatestCheckpoint(files, checkpoint_dir, {.verify_checksums = false});
  if (!newest.ok())
    return absl::UnavailableError(
        absl::StrCat(begun, "those since the last checkpoint are lost (", newest.status().message(), ")"));
  if (!*newest && !is_chief) return not_seen("sees none in " + checkpoint_dir);
  if (!*newest)
    return absl::UnavailableError(absl::StrCat(
        begun, "all are lost when the workers are started again: ", checkpoint_dir, " has no checkpoint yet"));
  const std::string name = (*newest)->substr((*newest)->rfind('/') + 1);
  const int64_t step = StepOfCheckpoint(name).value_or(0);
  return absl::UnavailableError(absl::StrCat(begun, std::max<int64_t>(0, global_step - step),
                                             " are lost: once started again, the workers go on from ", **newest));
}

}  // namespace muster
