#include "muster/collective/group/join_group.h"

#include <utility>

#include "muster/base/check.h"
#include "muster/base/os/processors.h"
#include "muster/base/status_macros.h"
#include "muster/collective/ring/ring_collective.h"
#include "muster/collective/shm/shm_collective.h"

namespace muster {

absl::StatusOr<std::unique_ptr<Collective>> JoinGroup(const GroupOptions& options, absl::Time deadline) {
  const size_t size = options.names.size();
  MUSTER_CHECK(size > 0 && options.addresses.size() == size && options.rank >= 0 &&
               static_cast<size_t>(options.rank) < size);
  const int processors = options.processors > 0 ? options.processors : UsableProcessors().count;
  if (size == 1) {
    ASSIGN_OR_RETURN(auto members, ShmMember::CreateAll(1));
    return std::make_unique<ShmCollective>(std::move(members[0]), options.names, processors);
  }
  TcpEventLoop loop;
  ASSIGN_OR_RETURN(Agreement agreement,
                   options.rank == 0 ? MeetAsRankZero(loop, options, deadline) : MeetRankZero(loop, options, deadline));
  if (agreement) return std::make_unique<ShmCollective>(std::move(agreement), options.names, processors);
  return RingCollective::Create(options);
}

}  // namespace muster
