// The child processes of this one whose ends some code of its own waits for. Who reaps orphans, which a subreaper gets
// as children, leaves these alone. For a process with one thread.
#pragma once

#include <sys/types.h>

namespace muster {

// From its start until its end has been waited for.
void AddAwaitedChild(pid_t pid);
void RemoveAwaitedChild(pid_t pid);
bool IsAwaitedChild(pid_t pid);

}  // namespace muster
