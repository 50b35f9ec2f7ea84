// Merges what a user wants of pods into those that muster writes. Pure, thread-safe.
#pragma once

#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"

namespace muster {

// Merges `overlay` into `into`. Maps are merged key by key, a null takes a key away. Lists whose items are maps with a
// key that names them are merged by it: mountPath, name or containerPort. Anything else takes the place of what is
// there.
void MergeOverlay(OrderedJson& into, const OrderedJson& overlay);

}  // namespace muster
