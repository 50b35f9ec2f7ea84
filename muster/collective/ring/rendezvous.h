// How the ranks of a group find each other: rank 0 listens at its address and the others connect to it. When all are
// there, they agree on what joins them: shared memory if they are all on one host, otherwise a ring of connections.
// Messages and steps: docs/collectives.md, "Rendezvous". Lives on a TcpEventLoop and is used by the thread that drives
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/collective/shm/shm_member.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster {

enum class CollectiveChoice : uint8_t {
  kAuto,  // shared memory if all ranks are on one host
  kShm,   // shared memory; an error if the ranks aren't on one host
  kRing,
};

struct GroupOptions {
  int rank = 0;
  std::vector<std::string> names;      // of all ranks, "worker:1": for messages
  std::vector<std::string> addresses;  // of all ranks: where each may listen
  JobToken token;
  CollectiveChoice choice = CollectiveChoice::kAuto;
  int processors = 0;  // that the ranks of this host may use together; 0: those that this process may use
  // Asked while waiting for other ranks: true ends the wait with Cancelled.
  std::function<bool()> stop_requested = [] { return false; };
};

// Methods of the requests to rank 0.
enum class RendezvousMethod : uint16_t { kEnter = 1, kAgree = 2, kContinue = 3 };

// What the ranks have agreed on; null means a ring.
using Agreement = std::unique_ptr<ShmMember>;

// Wait until all ranks are there. DeadlineExceeded names the missing ranks. Cancelled: stop_requested. InvalidArgument:
// a rank expects another group. FailedPrecondition: kShm, and a rank is on another host. Also the errors of Channel and
// Listener.
absl::StatusOr<Agreement> MeetAsRankZero(TcpEventLoop& loop, const GroupOptions& options, absl::Time deadline);
absl::StatusOr<Agreement> MeetRankZero(TcpEventLoop& loop, const GroupOptions& options, absl::Time deadline);

}  // namespace muster
