// The secret of a port of a job without a token: it keeps other users of the host out of the job. The listener draws it
// and leaves it in a file that only its user can read; a process of the same user that connects to the port finds it
// there by itself. It then takes the token's place in the handshake. docs/wire_format.md says where the files lie, and
// docs/security.md what that protects from. Internal to tcp/.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_address.h"
#include "muster/transport/transport.h"

namespace muster {

// Where the files may lie. A plain value.
struct PortSecretPlaces {
  std::string own;     // a folder that the system has made for this user alone: used if it is there
  std::string shared;  // a folder that all users may write, where the user gets one of its own

  static PortSecretPlaces OfThisUser();  // /run/user/UID and /tmp
};

// Lives with its listener. Not thread-safe.
class PortSecret {
 public:
  // Draws a secret and writes the file, in place of one that a killed process has left, and removes those that killed
  // processes have left for other ports. Call it once the port is taken
  // and before anybody is answered there. FailedPrecondition says which folder isn't this user's own, and what to do.
  static absl::StatusOr<std::unique_ptr<PortSecret>> Publish(
      const Endpoint& endpoint, const PortSecretPlaces& places = PortSecretPlaces::OfThisUser());
  ~PortSecret();  // removes the file, unless it is another one by now
  PortSecret(const PortSecret&) = delete;
  PortSecret& operator=(const PortSecret&) = delete;

  JobToken token() const { return {secret_}; }

  // Writes the file again if it is gone. /run/user/UID ends with the user's last session, and /tmp is swept, while the
  // process may go on for weeks.
  [[nodiscard]] absl::Status Keep();

 private:
  PortSecret(std::string name, PortSecretPlaces places);

  const std::string name_;  // of the file
  const PortSecretPlaces places_;
  const std::string secret_;
  Socket file_;  // whose lock shows that this process lives
};

// Returns what the listener of that endpoint has published. NotFound: there is nothing for this user, or the endpoint
// is not a loopback one. FailedPrecondition: a folder or file isn't this user's own.
absl::StatusOr<JobToken> FindPortSecret(const Endpoint& endpoint,
                                        const PortSecretPlaces& places = PortSecretPlaces::OfThisUser());

}  // namespace muster
