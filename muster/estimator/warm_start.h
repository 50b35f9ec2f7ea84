// Starts a new model with the values of another model's checkpoint. TensorFlow's WarmStartSettings. Used by the chief
// only, when it makes the model ready and model_dir has no checkpoint.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "muster/torch_bridge/module/tensor_source.h"

namespace muster {

struct WarmStartSettings {
  std::string checkpoint;  // "dir/model.ckpt-100", or a model_dir, for its latest
  // The variables to take: a regular expression that matches from the beginning of a name (TensorFlow's
  // vars_to_warm_start). It is an error if the checkpoint lacks one, unless the expression is the default: then the
  // variable begins as the model function makes it, and the log says so.
  std::string variables = ".*";
  // Names in the checkpoint of variables that have another name here: {here, there}.
  std::map<std::string, std::string> names;
};

// Loads the values into the tensors of `source`: parameters and buffers. The ps make tables of rows: the default
// expression leaves them out, and it is an error if another one names a table. Logs one line per variable taken. On an
// error about names nothing is changed. NotFound, FailedPrecondition: no checkpoint. InvalidArgument
// (IsWrongConfiguration): another shape (names both); a name in `names` that isn't a variable, or whose counterpart the
// checkpoint lacks; an invalid expression, or one by which nothing would be taken.
[[nodiscard]] absl::Status WarmStart(TensorSource& source, const WarmStartSettings& settings);

}  // namespace muster
