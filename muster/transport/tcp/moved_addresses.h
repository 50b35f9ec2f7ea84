// The cluster file: where tasks are that have moved to another host, while their peers still have the addresses that
// they were told at their start. A line for each task, "worker:0 10.0.0.2:20000 10.0.0.1:20000": its address now, and
// then those that it had before. The agent of a host replaces the file whenever an address changes (docs/moves.md).
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns the present address of the task that has or had `address`, as the file's text says; `address` itself if no
// task had it. A task's present address wins over another one's former. Pure.
std::string PresentAddressIn(std::string_view cluster_file_text, const std::string& address);

// The same with the file at `path`; `last` if that is empty, isn't there (yet) or can't be read. Blocking: it reads a
// local file of a few KiB.
std::string PresentAddress(const std::string& path, const std::string& address, const std::string& last);

// Returns the text of the cluster file at `path`; empty if there is none (yet). Blocking, as above.
std::string ClusterFileText(const std::string& path);

}  // namespace muster
