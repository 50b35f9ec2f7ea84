// Finds out what a program or library needs to run, from the bytes of its file (ELF, as the generic System V ABI and
// the Linux Standard Base's chapter on symbol versions describe it). The bytes may be anybody's: nothing outside of
// them is read, and broken ones are an error. Functions without state, thread-safe.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

struct GlibcVersion {
  int major = 0, minor = 0;

  auto operator<=>(const GlibcVersion&) const = default;
};

// Accepts "2.34", "2.2.5" (what follows the second number doesn't count). Nullopt: it is no version.
std::optional<GlibcVersion> ParseGlibcVersion(std::string_view text);

struct ElfNeeds {
  std::string machine;                 // as `uname -m` has it, "x86_64"; "ELF machine 8" for one that isn't known here
  std::vector<std::string> libraries;  // by file name, "libc.so.6"; those that these need aren't listed
  // The newest version of glibc that any needed symbol has, which is the oldest that will do. Nullopt: it needs none.
  std::optional<GlibcVersion> least_glibc;
};

// `file`: all bytes of a program or shared library for 64-bit little-endian machines. InvalidArgument: it is something
// else, or broken.
absl::StatusOr<ElfNeeds> NeedsOfElf(std::string_view file);

// Returns the needed libraries that don't belong to glibc.
std::vector<std::string> LibrariesBeyondGlibc(const ElfNeeds& needs);

}  // namespace muster
