#include "muster/torch_bridge/module/load_checkpoint.h"

#include <cstring>
#include <memory>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/store/checkpoints/checkpoint_part.h"

namespace muster {

absl::Status LoadCheckpoint(TensorSource& source, const CheckpointReader& checkpoint) {
  const std::vector<VariableSpec>& variables = source.variables();
  RETURN_IF_ERROR(CheckModelOfCheckpoint(checkpoint.manifest(), variables, checkpoint.path()));
  auto tables = std::make_shared<std::vector<std::vector<std::byte>>>(variables.size());
  for (size_t i = 0; i < variables.size(); ++i) {
    MutableByteSpan into = source.value(i);
    if (variables[i].kind == VariableKind::kRows) {
      (*tables)[i].resize(variables[i].bytes());
      into = (*tables)[i];
    }
    RETURN_IF_ERROR(checkpoint.ReadVariable(variables[i].name, into));
  }
  source.LookUpThrough([tables](size_t variable, const RowsOut& rows) {
    const size_t row_bytes = rows.values.size() / rows.indices.size();
    for (size_t i = 0; i < rows.indices.size(); ++i)
      std::memcpy(rows.values.data() + i * row_bytes, (*tables)[variable].data() + rows.indices[i] * row_bytes,
                  row_bytes);
    return absl::OkStatus();
  });
  return source.ShowValues();
}

}  // namespace muster
