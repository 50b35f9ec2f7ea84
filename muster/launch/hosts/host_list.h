// The hosts that a user has: from `--hosts a,b:4` or from a host file with one host a line. Pure but for ReadHostFile,
// which blocks while it reads; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

struct Host {
  std::string name;          // as OpenSSH gets it: "h1", "user@h1", an alias of the user's ssh configuration
  std::optional<int> slots;  // the most tasks that train there, > 0; unset: no limit
  std::optional<int> gpus;   // >= 0; unset: as many as the host has
  std::string address;       // under which the other hosts reach it; empty: muster finds it out

  bool operator==(const Host&) const = default;
};

// What ParseHostList accepts, for messages.
inline constexpr char kHostListForms[] = "names with their slots if limited: a,b,user@c:4";
// What a line of a host file may be, for messages.
inline constexpr char kHostLineForms[] = "NAME [slots=N] [gpus=N] [address=IP]";

// Parses a line of a host file without its comment. InvalidArgument says what is wrong.
absl::StatusOr<Host> ParseHostLine(std::string_view line);

// Parses "a,b:4,user@c". InvalidArgument names the part that is wrong: a name that is empty, there twice or not a
// host's, slots that aren't a number above 0.
absl::StatusOr<std::vector<Host>> ParseHostList(std::string_view text);

// Parses a host file; `file` is its name for messages. A '#' begins a comment. InvalidArgument lists all mistakes as
// FILE:LINE, also that there is no host.
absl::StatusOr<std::vector<Host>> ParseHostFile(std::string_view text, const std::string& file);

// NotFound names a file that isn't there: a wanted host file is never replaced by a default or by this machine.
absl::StatusOr<std::vector<Host>> ReadHostFile(const std::string& path);

// InvalidArgument if the name can't be that of a host: it is empty, begins with '-' (which ssh would read as an
// option), or has characters other than letters, digits and ". _ - @ : [ ] %".
[[nodiscard]] absl::Status ValidateHostName(std::string_view name);

}  // namespace muster
