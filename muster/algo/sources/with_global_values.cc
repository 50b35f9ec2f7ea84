#include "muster/algo/sources/with_global_values.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/store/client/value_set.h"

namespace muster {
namespace {

// Whether the source trains variable `i` in the memory of its ps: it always has the newest value, and putting an older
// one back would undo others' updates.
bool TrainsInPlace(StoreClient& client, size_t i, MutableByteSpan value) {
  // Asking gives the memory out, so only a variable that may lie there is asked for.
  return client.binding().values[i].data() == value.data() && client.InPlace(i).bytes.data() == value.data();
}

}  // namespace

absl::Status WithGlobalValues(StoreClient& client, GradientSource& source, absl::FunctionRef<absl::Status()> look) {
  RETURN_IF_ERROR(source.TakeValues());
  ValueSet shown;
  std::vector<std::vector<std::byte>> own(source.variables().size());
  for (size_t i = 0; i < own.size(); ++i) {
    const MutableByteSpan value = source.value(i);
    shown.values.push_back(value);
    if (!value.empty() && !TrainsInPlace(client, i, value)) own[i].assign(value.begin(), value.end());
  }
  absl::Status status = shown.Peek(client);
  if (status.ok()) status = source.ShowValues();
  if (status.ok()) status = look();
  for (size_t i = 0; i < own.size(); ++i) std::copy(own[i].begin(), own[i].end(), source.value(i).begin());
  status.Update(source.ShowValues());
  return status;
}

}  // namespace muster
