#include "muster/launch/system/awaited_children.h"

#include <set>

namespace muster {
namespace {

std::set<pid_t>& Awaited() {
  static std::set<pid_t> pids;
  return pids;
}

}  // namespace

void AddAwaitedChild(pid_t pid) { Awaited().insert(pid); }
void RemoveAwaitedChild(pid_t pid) { Awaited().erase(pid); }
bool IsAwaitedChild(pid_t pid) { return Awaited().contains(pid); }

}  // namespace muster
