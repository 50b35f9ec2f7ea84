// Training in the store's own memory, where the client offers it (direct apply). Used by the training thread.
#pragma once

#include "muster/algo/sources/gradient_source.h"
#include "muster/store/client/store_client.h"

namespace muster {

// Every variable of `source` that the client offers memory for and that can move there is trained there from now on;
// `binding`, and the client's, say so.
void TrainInPlace(StoreClient& client, GradientSource& source, ModelBinding& binding);

}  // namespace muster
