// The addresses of a cluster's tasks, and whether the client that a server hears is at the connection's other end. A
// program of another user that has taken a task's port can't prove that it belongs to the job, but it can pass a
// client's proof on, to another task or to that one. So a client says, within what it signs, where it is and where it
// meant to go (docs/security.md). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// As TF_CONFIG names them. Nothing is known of a cluster: all are empty.
struct TaskAddresses {
  std::string own;                  // of the process's own task
  std::vector<std::string> others;  // of all other tasks
  // A proxy or a translation of addresses may be between the tasks, so their endpoints aren't compared.
  bool allow_proxy = false;
};

// One connection as one of its ends sees it.
struct ConnectionEnds {
  std::string client;  // "10.0.0.2:50000", "[fe80::1%eth0]:50000"
  std::string server;  // "10.0.0.1:2222"
};

// Where a client is, and where it means to connect to.
struct Destination {
  std::string address;  // as the client's cluster names the task, "h:2222"
  ConnectionEnds ends;  // of the connection that the client has got to that address
};

enum class Reached {
  kWhoWasMeant,
  kAnotherTask,
  kThroughAnother,  // somebody between passes bytes on from one connection to another
};

// Returns whether `address` is, or was before it moved, that of a task other than this one, or a former one of this
// task. `cluster_file_text` is empty where no task moves (tcp/moved_addresses.h). An address that isn't known, as that
// of a forwarded port, is nobody's.
bool IsElsewhere(const TaskAddresses& tasks, std::string_view cluster_file_text, const std::string& address);

// Returns whom a client has reached that the server hears on a connection with these ends. Two connections never have
// the same ends, so who passes bytes on has others, but for where addresses are translated. The ends are compared only
// for who goes by the server's own address: others, as who uses a forwarded port, have chosen to go through something.
Reached WhoIsReached(const TaskAddresses& tasks, std::string_view cluster_file_text, const Destination& destination,
                     const ConnectionEnds& ends);

}  // namespace muster
