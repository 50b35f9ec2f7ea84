// Values that a new model begins with: those of another model's checkpoint. TensorFlow's WarmStartSettings. Used by the
// chief alone, when it makes the model ready and model_dir has no checkpoint.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "muster/torch_bridge/module/module_source.h"

namespace muster {

struct WarmStartSettings {
  std::string checkpoint;  // "dir/model.ckpt-100", or a model_dir: its latest
  // Variables that are taken: a regular expression that matches from the beginning of a name (TensorFlow's
  // vars_to_warm_start). Those that the checkpoint hasn't are an error, unless the expression is the default: then they
  // begin as the model function makes them, and the log says so.
  std::string variables = ".*";
  // Names in the checkpoint of variables that are called otherwise here: {here, there}.
  std::map<std::string, std::string> names;
};

// Into the module of `source`: parameters and buffers; tables of rows the ps make (the default expression leaves them
// out, another that names one is an error). What was taken is in the log, a line a variable. On an error about names
// nothing is changed. NotFound, FailedPrecondition: no checkpoint. InvalidArgument (IsWrongConfiguration): another
// shape (both said); a name of `names` that isn't a variable, or whose counterpart the checkpoint hasn't; an expression
// that is none, or by which nothing would be taken.
[[nodiscard]] absl::Status WarmStart(ModuleSource& source, const WarmStartSettings& settings);

}  // namespace muster
