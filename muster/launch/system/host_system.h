// Says before a program is copied to a host whether it can run there. Functions without state, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/launch/system/elf_needs.h"

namespace muster {

struct HostSystem {
  std::string machine;                // what `uname -m` prints: "x86_64"
  std::optional<GlibcVersion> glibc;  // nullopt: another C library, musl for instance
};

// Parses what `getconf GNU_LIBC_VERSION` prints on a host, "glibc 2.36". Nullopt for anything else, as a host with
// another C library prints: an empty text, a complaint.
std::optional<GlibcVersion> GlibcOfHost(std::string_view getconf_output);

// FailedPrecondition says what `host` (its name) lacks to run this muster, whose file needs `muster`, and the way out.
[[nodiscard]] absl::Status CheckRunsOn(const std::string& host, const HostSystem& system, const ElfNeeds& muster);

}  // namespace muster
