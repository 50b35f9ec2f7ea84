// How an agent that connects to its supervisor over TCP finds it, and how each knows the other (docs/agents.md, "The
// stream"): by a file that only the run's user can read, on a file system that the hosts share or copied there. Pure
// functions, and blocking access to files by a process with one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct Rendezvous {
  std::vector<std::string>
      addresses;       // of the supervisor, "HOST:PORT" in digits or by a name, to be tried in this order
  std::string secret;  // kRendezvousSecretBytes, random for each run
};

inline constexpr size_t kRendezvousSecretBytes = 32;

Rendezvous NewRendezvous(std::vector<std::string> addresses);
// Returns what is in the file.
std::string RendezvousText(const Rendezvous& rendezvous);
// Replaces the file, so that a reader finds the old one or the new one. Nobody else may read it.
[[nodiscard]] absl::Status WriteRendezvous(const std::string& path, const Rendezvous& rendezvous);
// PermissionDenied: others could have read or written the file. InvalidArgument: it isn't such a file.
absl::StatusOr<Rendezvous> ReadRendezvous(const std::string& path);

// Returns the key of a host's streams, for the handshake and the MACs.
std::string KeyOfHost(const std::string& secret, const std::string& host);
// What an agent sends first: it names its host, so that the supervisor knows which key the other end must have, and
// shows that it knows this key, so that no other user of the supervisor's machine is taken for it. What follows is the
// handshake, in which the supervisor is the client. A stranger that reads what passes between the two hosts can send
// the same greeting, and fails in the handshake.
std::string GreetingOf(const std::string& host, const std::string& key);

// Finds the greeting at the beginning of what has come.
struct Greeting {
  std::string host;
  std::string proof;
  size_t bytes = 0;  // of the greeting; 0: more are needed
};
// Returns whether the one who sent it knows the key of its host.
bool IsProven(const Greeting& greeting, const std::string& key);
// InvalidArgument: no greeting, or a host's name of more than 256 bytes.
absl::StatusOr<Greeting> ParseGreeting(const std::string& received);

}  // namespace muster
