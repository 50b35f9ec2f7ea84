#include "muster/base/os/local_file_system.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace muster {
namespace {

// linux/magic.h lacks these.
constexpr uint32_t kXfs = 0x58465342, kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e, kNtfs3 = 0x7366746e;

// A list of network file systems would take those that it lacks for local ones.
constexpr std::array<uint32_t, 12> kLocalFileSystems = {
    EXT4_SUPER_MAGIC, kXfs,      BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, kZfs,
    F2FS_SUPER_MAGIC, kBcachefs, RAMFS_MAGIC,       kNtfs3,      MSDOS_SUPER_MAGIC,     REISERFS_SUPER_MAGIC};

}  // namespace

bool IsOnLocalFileSystem(const std::string& folder) {
  struct statfs info;
  if (statfs(folder.c_str(), &info) != 0) return false;
  return std::find(kLocalFileSystems.begin(), kLocalFileSystems.end(), static_cast<uint32_t>(info.f_type)) !=
         kLocalFileSystems.end();
}

}  // namespace muster
