#include "muster/launch/project/tree_hash.h"

#include "absl/strings/escaping.h"
#include "muster/base/absl_view.h"

namespace muster {
namespace {

// Must be changed whenever the same files would get another hash.
constexpr char kTreeHashBegin[] = "muster tree 1\n";

}  // namespace

bool IsRegular(const ProjectFile& file) { return !file.empty_folder && file.link_to.empty(); }

std::string DigestBesideFiles(const ProjectFile& file) {
  Sha256 sha;
  sha.Add(file.link_to);
  return sha.Finish();
}

TreeHash::TreeHash() { sha_.Add(kTreeHashBegin); }

void TreeHash::Add(const ProjectFile& file, const std::string& digest) {
  const bool link = !file.link_to.empty();
  sha_.Add(file.empty_folder ? "d" : link ? "l" : file.executable ? "x" : "f");
  sha_.AddWithLength(file.path);
  sha_.Add(digest);
}

std::string TreeHash::Finish() {
  const std::string digest = sha_.Finish();
  return absl::BytesToHexString(AbslView(digest));
}

}  // namespace muster
