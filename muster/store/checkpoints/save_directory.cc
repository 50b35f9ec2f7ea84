#include "muster/store/checkpoints/save_directory.h"

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/text/one_line.h"
#include "muster/checkpoint/checkpoint_directory.h"

namespace muster {
namespace {

constexpr size_t kMostOfPath = 300;  // in a line of the log

}  // namespace

absl::StatusOr<std::string> SaveDirectory::For(const std::string& directory, const std::string& save_id) {
  // Only the announcement tells whether both directories are the same: each process may know it by another path.
  const std::string& own = directory_.empty() ? directory : directory_;
  if (SeesSave(files_, own, save_id)) return directory_ = own;
  if (directory_.empty()) return absl::NotFoundError(directory);
  if (!std::exchange(said_, true))
    LogInfo("the chief saves into ", OneLine(directory, kMostOfPath), ", which is not this ps's ", directory_,
            ": the chief writes the checkpoints itself");
  return absl::NotFoundError(absl::StrCat(directory, " as its ", directory_));
}

}  // namespace muster
