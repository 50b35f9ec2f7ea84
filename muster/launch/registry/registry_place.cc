#include "muster/launch/registry/registry_place.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/files/file_system.h"
#include "muster/base/fnv1a.h"
#include "muster/base/os/private_folder.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Homes of different paths have different files.
std::string IndexName(const Home& home) { return absl::StrFormat("%016x.db", Fnv1a(home.path())); }

}  // namespace

absl::StatusOr<RegistryPlace> FindRegistryPlace(const Home& home, const std::string& index_folder,
                                                const HostFolders& host) {
  RegistryPlace place{.database = home.database(), .shared = false, .machine = MachineId::This()};
  if (!index_folder.empty()) {
    RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(index_folder));
    ASSIGN_OR_RETURN(const PrivateFolder folder, PrivateFolder::Open(index_folder));
    place.database = JoinPath(folder.path(), IndexName(home));
    place.shared = true;
    return place;
  }
  const bool local = host.is_local(home.path());
  const bool usable = access(home.path().c_str(), W_OK) == 0 || PosixFileSystem().Exists(home.database());
  if (local && usable) return place;
  ASSIGN_OR_RETURN(const PrivateFolder shared, PrivateFolder::OpenShared(host.of_all));
  ASSIGN_OR_RETURN(const PrivateFolder own, shared.OpenIn(absl::StrCat("muster-", geteuid()), /*make=*/true));
  place.database = JoinPath(own.path(), IndexName(home));
  place.shared = !local;
  return place;
}

}  // namespace muster
