#include "muster/store/direct/direct_access.h"

#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {

absl::StatusOr<OpenDirectReply> DirectAccess::Open(Arena& arena, int client, uint64_t incarnation) {
  if (port_ == nullptr) return absl::NotFoundError("this ps applies all updates itself");
  if (arena.model().applied_by_ps_alone())
    return absl::NotFoundError(
        "the model has a staleness bound, elastic exchanges or the workers' order: only the ps can apply its updates");
  const std::string ticket = port_->IssueTicket(client, incarnation, arena.memory().fd());
  if (ticket.empty()) return absl::ResourceExhaustedError("this ps has no descriptors left");
  return OpenDirectReply{port_->name(), ticket, static_cast<uint32_t>(arena.layout().num_clients())};
}

absl::Status DirectAccess::Enter(Arena& arena, int client, const std::string& ticket) {
  const auto attached = port_ != nullptr ? port_->AttachedProcess(client, ticket) : std::nullopt;
  if (!attached) return absl::PermissionDeniedError("nobody has fetched this ps's memory with that ticket");
  arena.RecoverWriter(client);
  if (arena.model().gated()) Publish<uint64_t>(arena.header().rounds.divided, 1);
  ClientRecord& record = arena.client(client);
  Publish<int64_t>(record.process, 0);
  // A worker in the ps's own process dies with it.
  if (attached->pid == getpid()) return absl::OkStatus();
  record.process_start = attached->start;
  Publish<int64_t>(record.process, attached->pid);
  return absl::OkStatus();
}

void DirectAccess::Leave(Arena& arena, int client) { Publish<int64_t>(arena.client(client).process, 0); }

absl::Status DirectAccess::Evict(Arena& arena, int client) const {
  ClientRecord& record = arena.client(client);
  if (record.process == 0) return absl::OkStatus();
  const ProcessIdentity process{record.process, record.process_start};
  const bool has_left = port_ != nullptr && port_->HasLeft(client, process);
  if (!has_left && !EndProcess(process))
    return absl::AlreadyExistsError(absl::StrCat(record.task, " was running (", record.where,
                                                 ") and had access to this ps's memory: it is being killed"));
  Leave(arena, client);
  arena.RecoverWriter(client);
  const Arena::CountLock finishes_what_was_begun(arena);
  return absl::OkStatus();
}

}  // namespace muster
