#include "apps/muster/commands/job/receive_place.h"

#include <unistd.h>

#include <cerrno>

#include "apps/muster/terminal/own_environment.h"

namespace muster {

absl::StatusOr<ReceivePlace> ReceivePlaceHere() {
  char host_name[256] = "";
  if (gethostname(host_name, sizeof host_name - 1) != 0) return absl::ErrnoToStatus(errno, "no name of this host");
  return PlaceToReceive(OwnVariable("HOME"), OwnVariable("XDG_CACHE_HOME"), host_name);
}

}  // namespace muster
