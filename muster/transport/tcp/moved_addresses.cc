#include "muster/transport/tcp/moved_addresses.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "muster/base/files/file_system.h"

namespace muster {

std::string PresentAddressIn(std::string_view cluster_file_text, const std::string& address) {
  std::string moved = address;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(cluster_file_text.data(), cluster_file_text.size()), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 2) continue;
    if (words[1] == address) return address;
    for (size_t i = 2; i < words.size(); ++i)
      if (words[i] == address) moved = std::string(words[1]);
  }
  return moved;
}

std::string PresentAddress(const std::string& path, const std::string& address, const std::string& last) {
  if (path.empty()) return last;
  const absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(path);
  return text.ok() ? PresentAddressIn(*text, address) : last;
}

std::string ClusterFileText(const std::string& path) {
  return path.empty() ? "" : PosixFileSystem().ReadFile(path).value_or("");
}

}  // namespace muster
