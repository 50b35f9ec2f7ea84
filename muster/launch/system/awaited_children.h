// The child processes of this one whose ends some code of its own waits for. Code that reaps
// orphans, which a subreaper gets as children, leaves these alone. For a process with one thread, whose children are
// one set, whatever starts them.
#pragma once

#include <sys/types.h>

namespace muster {

// From its start until its end has been waited for.
void AddAwaitedChild(pid_t pid);
void RemoveAwaitedChild(pid_t pid);
bool IsAwaitedChild(pid_t pid);

}  // namespace muster
