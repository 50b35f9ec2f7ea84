#include "muster/data/stages/stage_after.h"

#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"

namespace muster {

absl::Status StageAfter::CheckNotShared() const {
  if (work() == nullptr) return absl::OkStatus();
  return WrongOptionError(
      "isn't allowed after share_by: the shared work counts rows and epochs; accepted there: map, batch, prefetch");
}

absl::StatusOr<std::unique_ptr<StageStream>> IndexedStageAfter::MakeStream() const {
  if (indexed()) return DatasetStage::MakeStream();
  ASSIGN_OR_RETURN(std::unique_ptr<StageStream> elements, before()->MakeStream());
  return MakeStreamOver(std::move(elements));
}

}  // namespace muster
