#include "muster/launch/experiment/supervisor_setting.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "muster/base/text/environment_list.h"
#include "muster/launch/task/node_layout.h"
#include "muster/launch/task/task_environment.h"

namespace muster {

std::vector<std::string> OutsideVariables(std::vector<std::string> environment) {
  const auto of_another_run = [](const std::string& variable) {
    for (const char* name : {kTfConfigVariable, kArenaFdVariable, kStatusPortVariable})
      if (IsVariable(variable, name)) return true;
    return false;
  };
  environment.erase(std::remove_if(environment.begin(), environment.end(), of_another_run), environment.end());
  return environment;
}

std::vector<int> GpusOfMachine(const std::string& visible) {
  const int count = CountGpus();
  std::vector<int> all, named;
  for (int i = 0; i < count; ++i) all.push_back(i);
  if (visible.empty()) return all;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(visible, ','))) {
    int number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 0 || number >= count) return all;
    named.push_back(number);
  }
  return named;
}

}  // namespace muster
