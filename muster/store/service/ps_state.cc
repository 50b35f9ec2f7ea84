#include "muster/store/service/ps_state.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {

absl::Status PsState::HearChief(ConnectionId connection, const Stamp& stamp, uint64_t chief_epoch) {
  RETURN_IF_ERROR(Hear(connection, stamp));
  return clients.CheckChief(stamp, chief_epoch);
}

absl::Status PsState::NeedModel() const {
  if (arena) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      options.task, " has no model: the chief has not initialised it, or it was restarted and has lost it"));
}

absl::Status PsState::NeedLead() const {
  if (options.lead) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(options.task, " does not lead: ask ps:0"));
}

absl::Status PsState::NeedTraining() const {
  return ending.empty() ? absl::OkStatus() : absl::CancelledError(absl::StrCat("training has ended: ", ending));
}

absl::Status PsState::CheckGeneration(uint64_t generation) const {
  if (generation == arena->header().generation) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the values of ", options.task, " were loaded anew (generation ",
                                         arena->header().generation, ", not ", generation,
                                         "): they have to be pulled again"));
}

}  // namespace muster
