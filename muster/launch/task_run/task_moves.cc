#include "muster/launch/task_run/task_moves.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

void TaskMoves::Know(const TaskId& task, const std::vector<std::string>& addresses) {
  std::vector<std::string>& present = addresses_[task];
  if (!present.empty() && present != addresses) former_[task].push_back(present.front());
  present = addresses;
}

bool TaskMoves::AreOfAnother(const TaskId& task, const std::vector<std::string>& addresses) const {
  const auto has_one = [&](const std::pair<const TaskId, std::vector<std::string>>& other) {
    return other.first != task && std::find_first_of(other.second.begin(), other.second.end(), addresses.begin(),
                                                     addresses.end()) != other.second.end();
  };
  return std::any_of(addresses_.begin(), addresses_.end(), has_one) ||
         std::any_of(former_.begin(), former_.end(), has_one);
}

std::string TaskMoves::ClusterFile() const {
  std::string text;
  for (const auto& [task, addresses] : addresses_) {
    if (addresses.empty()) continue;
    absl::StrAppend(&text, task.ToString(), " ", addresses.front());
    if (const auto former = former_.find(task); former != former_.end())
      for (const std::string& address : former->second) absl::StrAppend(&text, " ", address);
    text += '\n';
  }
  return text;
}

}  // namespace muster
