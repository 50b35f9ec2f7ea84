#include "muster/transport/task_addresses.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster {

bool IsElsewhere(const TaskAddresses& tasks, std::string_view cluster_file_text, const std::string& address) {
  if (tasks.own.empty() || address == tasks.own) return false;
  if (std::ranges::find(tasks.others, address) != tasks.others.end()) return true;
  const std::vector<absl::string_view> words = absl::StrSplit(
      absl::string_view(cluster_file_text.data(), cluster_file_text.size()), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return std::ranges::find(words, absl::string_view(address)) != words.end();
}

}  // namespace muster
