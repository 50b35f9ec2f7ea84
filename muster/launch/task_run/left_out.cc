#include "muster/launch/task_run/left_out.h"

namespace muster {

std::set<std::string> LeftOutHosts(const HostPlan& plan) {
  std::set<std::string> hosts = plan.optional_hosts;
  for (const auto& [task, host] : plan.placement) hosts.erase(host);
  return hosts;
}

MoveWish ElsewhereIn(const HostPlan& plan, const TaskId& chief) {
  MoveWish wish;
  if (plan.optional_hosts.empty()) return wish;
  std::set<std::string> needed;  // those without tasks don't get the code
  for (const auto& [task, host] : plan.placement) {
    wish.others.push_back(task);
    if (!plan.optional_hosts.contains(host)) needed.insert(host);
  }
  wish.hosts.assign(needed.begin(), needed.end());
  wish.last_resort = plan.placement.at(chief);
  return wish;
}

}  // namespace muster
