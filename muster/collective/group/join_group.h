// Makes this process a rank of a group of workers.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/collective/collective.h"
#include "muster/collective/ring/rendezvous.h"

namespace muster {

// Waits until all ranks have come (rank 0 listens at its address; the ranks may come in any order, or be restarted
// meanwhile), then joins them by shared memory or a ring of TCP connections, according to options.choice. Errors are
// those of rendezvous.h. A group of one waits for nobody.
absl::StatusOr<std::unique_ptr<Collective>> JoinGroup(const GroupOptions& options, absl::Time deadline);

}  // namespace muster
