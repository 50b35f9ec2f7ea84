// Training in the store's own memory, if the client offers it (direct apply). Used by the training thread.
#pragma once

#include "muster/algo/sources/gradient_source.h"
#include "muster/store/client/store_client.h"

namespace muster {

// Moves every variable of `source` for which the client offers memory, and which can move, to that memory, and updates
// `binding` and the client's.
void TrainInPlace(StoreClient& client, GradientSource& source, ModelBinding& binding);

}  // namespace muster
