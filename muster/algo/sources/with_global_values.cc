#include "muster/algo/sources/with_global_values.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/store/calls/worker_progress.h"
#include "muster/store/client/store_client.h"
#include "muster/store/client/value_set.h"

namespace muster {
namespace {

// Whether the source trains variable `i` in the memory of its ps: it always has the newest value, and putting an older
// one back would undo others' updates.
bool TrainsInPlace(StoreClient& client, size_t i, MutableByteSpan value) {
  // Asking gives the memory out, so only a variable that may lie there is asked for.
  return !value.empty() && client.binding().values[i].data() == value.data() &&
         client.InPlace(i).bytes.data() == value.data();
}

}  // namespace

absl::Status WithGlobalValues(StoreClient& client, GradientSource& source, absl::FunctionRef<absl::Status()> look) {
  const WorkerProgress::Busy busy(client.progress(), "looking at the global values");
  const size_t variables = source.variables().size();
  ValueSet shown;
  std::vector<bool> in_place(variables);
  for (size_t i = 0; i < variables; ++i) {
    shown.values.push_back(source.value(i));
    in_place[i] = TrainsInPlace(client, i, shown.values[i]);
  }
  // A program may have trained the copy that it computes with. In the memory of the ps that copy may be the older one.
  if (std::find(in_place.begin(), in_place.end(), true) == in_place.end()) RETURN_IF_ERROR(source.TakeValues());
  std::vector<std::vector<std::byte>> own(variables);
  for (size_t i = 0; i < variables; ++i)
    if (!in_place[i]) own[i].assign(shown.values[i].begin(), shown.values[i].end());
  absl::Status status = shown.Peek(client);
  if (status.ok()) status = source.ShowValues();
  if (status.ok()) status = look();
  for (size_t i = 0; i < variables; ++i) std::copy(own[i].begin(), own[i].end(), source.value(i).begin());
  status.Update(source.ShowValues());
  return status;
}

}  // namespace muster
