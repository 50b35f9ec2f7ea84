// Names the machine on which a process runs, in such a way that a process elsewhere knows whether its own process
// numbers and locks mean the same. Plain values, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace muster {

struct MachineId {
  std::string host;         // its host name
  std::string boot;         // changes with each boot of the kernel; empty: unknown
  std::string pid_numbers;  // the PID namespace; empty: unknown

  // Asks the operating system.
  static MachineId This();
  // Parses ToString's text; anything else gives a machine that equals none.
  static MachineId Parse(std::string_view text);
  // "HOST BOOT NAMESPACE", '-' for what is unknown.
  std::string ToString() const;

  // Whether both are the same kernel, so that it knows of the locks of both.
  bool HasSameKernel(const MachineId& other) const { return !boot.empty() && boot == other.boot; }
  // Whether a process number means the same process in both.
  bool HasSamePids(const MachineId& other) const { return HasSameKernel(other) && pid_numbers == other.pid_numbers; }

  bool operator==(const MachineId&) const = default;
};

}  // namespace muster
