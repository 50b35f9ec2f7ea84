// The addresses of a cluster's tasks, and whether a client that a server hears meant that server. A program of another
// user that has taken a task's port can't prove that it belongs to the job, but it can pass a client's proof on to
// another task. So a client says, within what it signs, where it meant to go (docs/security.md). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// As TF_CONFIG names them. Nothing is known of a cluster: all are empty.
struct TaskAddresses {
  std::string own;                  // of the process's own task
  std::vector<std::string> others;  // of all other tasks
};

// Where a client connects to.
struct Destination {
  std::string address;   // as the client's cluster names the task, "h:2222"
  std::string endpoint;  // what the client has reached under this name, "10.0.0.1:2222"
};

// Returns whether `address` is, or was before it moved, that of a task other than this one, or a former one of this
// task. `cluster_file_text` is empty where no task moves (tcp/moved_addresses.h). An address that isn't known, as that
// of a forwarded port, is nobody's.
bool IsElsewhere(const TaskAddresses& tasks, std::string_view cluster_file_text, const std::string& address);

}  // namespace muster
