// Whether a folder is on a file system that only this machine's processes write. Blocks while the system answers, which
// may take long where a server doesn't. Thread-safe.
#pragma once

#include <string>

namespace muster {

// Returns true for the kinds that are known to be local. False for all others, as those of networks and FUSE, and for a
// folder that doesn't exist: locks, SQLite and inotify may not work there as they do on this machine's disks.
bool IsOnLocalFileSystem(const std::string& folder);

}  // namespace muster
