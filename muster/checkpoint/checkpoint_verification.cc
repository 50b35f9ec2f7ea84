#include "muster/checkpoint/checkpoint_verification.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_listing.h"
#include "muster/checkpoint/checkpoint_reader.h"

namespace muster {
namespace {

absl::Status VerifyPart(FileSystem& files, const std::string& path, const ManifestPart& part) {
  RETURN_IF_ERROR(CheckPartSize(files, path, part));
  ASSIGN_OR_RETURN(const auto reader, TensorFileReader::Open(files, path));
  return reader->Verify(part.crc32c);
}

}  // namespace

std::vector<VerifiedFile> VerifyCheckpoint(FileSystem& files, const std::string& path) {
  const std::string manifest_path = absl::StrCat(path, kManifestSuffix);
  const auto text = files.ReadFile(manifest_path);
  const auto manifest = text.ok() ? ParseManifest(*text, manifest_path) : text.status();
  std::vector<VerifiedFile> verified = {{manifest_path, text.ok() ? text->size() : 0, manifest.status()}};
  if (!manifest.ok()) return verified;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  for (const ManifestPart& part : manifest->parts) {
    const std::string part_path = JoinPath(directory, part.file);
    verified.push_back({part_path, files.FileSize(part_path).value_or(0), VerifyPart(files, part_path, part)});
  }
  const bool whole =
      std::all_of(verified.begin(), verified.end(), [](const VerifiedFile& file) { return file.status.ok(); });
  // The manifest and the parts, each whole, may still contradict each other; the message names the part and the tensor.
  if (whole) verified[0].status = CheckpointReader::Open(files, path, {.verify_checksums = false}).status();
  return verified;
}

}  // namespace muster
