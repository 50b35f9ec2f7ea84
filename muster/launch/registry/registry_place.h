// Where a host keeps its index of a MUSTER_HOME (docs/experiments/state.md): in it, unless it is on a network file
// system, where SQLite isn't safe, or this user can't write there.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/os/local_file_system.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/registry/home.h"

namespace muster {

struct RegistryPlace {
  std::string database;  // the index's file; empty: it is in this process's memory alone
  bool shared = false;   // others write MUSTER_HOME with another index
  MachineId machine;     // this one
};

// What this host has.
struct HostFolders {
  bool (*is_local)(const std::string& folder) = IsOnLocalFileSystem;
  std::string of_all = "/var/tmp";  // of its own disk; it outlives a reboot
};

// `index_folder`: the folder that MUSTER_INDEX names; empty: not set. Makes the index's folder. FailedPrecondition: the
// folder belongs to somebody else, or others may write there.
absl::StatusOr<RegistryPlace> FindRegistryPlace(const Home& home, const std::string& index_folder,
                                                const HostFolders& host = {});

}  // namespace muster
