// Where this host keeps the code that hosts of a run get.
#pragma once

#include "absl/status/statusor.h"
#include "muster/launch/project/tree_receiver.h"

namespace muster {

// Errors as of PlaceToReceive.
absl::StatusOr<ReceivePlace> ReceivePlaceHere();

}  // namespace muster
