// A look at the model as the ps hold it now, in the memory that the worker trains in, between two of its steps. Used by
// the training thread.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/algo/sources/gradient_source.h"
#include "muster/store/client/store_client.h"

namespace muster {

// Calls `look` while `source` shows the values and buffers that the ps hold, and then gives it back its own: training
// goes on as if nobody had looked. What `look` changes in them is undone, too, unless the source trains in the memory
// of the ps. Errors: StoreClient's; those of `look`, after which the source has its own values as well.
[[nodiscard]] absl::Status WithGlobalValues(StoreClient& client, GradientSource& source,
                                            absl::FunctionRef<absl::Status()> look);

}  // namespace muster
