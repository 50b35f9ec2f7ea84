#include "muster/checkpoint/checkpoint_listing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_directory.h"

namespace muster {
namespace {

absl::Status Fill(FileSystem& files, const std::string& directory, ListedCheckpoint& checkpoint) {
  const std::string path = JoinPath(directory, absl::StrCat(checkpoint.name, kManifestSuffix));
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  checkpoint.bytes = text.size();
  ASSIGN_OR_RETURN(checkpoint.manifest, ParseManifest(text, path));
  absl::Status first_error;
  for (const ManifestPart& part : checkpoint.manifest.parts) {
    checkpoint.bytes += part.bytes;
    first_error.Update(CheckPartSize(files, JoinPath(directory, part.file), part));
  }
  return first_error;
}

}  // namespace

absl::Status CheckPartSize(FileSystem& files, const std::string& path, const ManifestPart& part) {
  const auto bytes = files.FileSize(path);
  if (absl::IsNotFound(bytes.status())) return absl::DataLossError(absl::StrCat(path, " is missing"));
  if (!bytes.ok()) return bytes.status();
  if (*bytes == part.bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " is damaged: has ", *bytes, " bytes, wanted ", part.bytes));
}

absl::StatusOr<std::vector<ListedCheckpoint>> ListWithContents(FileSystem& files, const std::string& directory) {
  if (!files.ListDirectory(directory).ok())
    return absl::NotFoundError(absl::StrCat(directory, " is not a directory that can be read"));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, directory));
  // ListCheckpoints has warned of a file that can't be understood.
  auto state = ReadCheckpointState(files, directory);
  if (absl::IsNotFound(state.status()) || absl::IsDataLoss(state.status())) state = CheckpointState();
  if (!state.ok()) return state.status();
  std::vector<ListedCheckpoint> checkpoints;
  for (const std::string& name : names) {
    ListedCheckpoint checkpoint = {.name = name,
                                   .global_step = StepOfCheckpoint(name).value_or(0),
                                   .newest = name == names.back(),
                                   .preserved = state->IsPreserved(name)};
    checkpoint.damage = Fill(files, directory, checkpoint);
    checkpoints.push_back(std::move(checkpoint));
  }
  return checkpoints;
}

}  // namespace muster
