// Memory without a name that processes share by its descriptor. It can grow but never shrink: a process that has it
// mapped would get a SIGBUS beyond its end.
#pragma once

namespace muster {

// Returns a descriptor (close-on-exec) of an empty file in memory; -1 and errno if the system gives none. `name` is
// only for /proc.
int CreateMemoryFile(const char* name);

}  // namespace muster
