#include "muster/launch/backends/local/thread_share.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

// Returns nullopt for what is no number from 1.
std::optional<int> PositiveNumberIn(const std::map<std::string, std::string>& variables, const char* name) {
  const auto found = variables.find(name);
  int number = 0;
  if (found == variables.end() || !absl::SimpleAtoi(found->second, &number) || number < 1) return std::nullopt;
  return number;
}

}  // namespace

std::optional<ThreadShare> ThreadShareOf(const std::map<std::string, std::string>& variables,
                                         absl::FunctionRef<Processors(std::optional<int> limit)> processors) {
  const std::optional<int> sharers = PositiveNumberIn(variables, kSharersVariable);
  const auto chosen = variables.find(kThreadsVariable);
  if (!sharers.has_value() || (chosen != variables.end() && !chosen->second.empty())) return std::nullopt;
  const Processors here = processors(PositiveNumberIn(variables, kProcessorsVariable));
  const int threads = std::max(1, here.count / *sharers);
  return ThreadShare{
      .threads = threads,
      .line = absl::StrCat("each process computes with ", threads, threads == 1 ? " thread (" : " threads (",
                           here.count, here.count == 1 ? " processor " : " processors ", here.why,
                           "; processes on this host: ", *sharers, "); ", kThreadsVariable,
                           " or resources.cpus says otherwise")};
}

}  // namespace muster
