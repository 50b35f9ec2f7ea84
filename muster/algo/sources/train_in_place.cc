#include "muster/algo/sources/train_in_place.h"

namespace muster {

void TrainInPlace(StoreClient& client, GradientSource& source, ModelBinding& binding) {
  bool moved = false;
  for (size_t i = 0; i < binding.variables.size(); ++i) {
    const InPlaceMemory memory = client.InPlace(i);
    if (memory.bytes.empty() || memory.bytes.data() == binding.values[i].data()) continue;
    if (!source.UseMemory(i, memory.bytes, memory.owner)) continue;
    binding.values[i] = memory.bytes;
    moved = true;
  }
  if (moved) client.Bind(binding);
}

}  // namespace muster
