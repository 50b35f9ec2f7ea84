// Hyperparameters for TensorBoard's HParams tab: a table of runs by their settings. Encoded for its plugin
// (tensorboard/plugins/hparams/plugin_data.proto, api.proto). Thread-compatible.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/time/time.h"

namespace muster {

// A hyperparameter: `{"learning_rate", 0.1}`, `{"layers", 3}`, `{"optimizer", "adam"}`, `{"nesterov", true}`.
struct HParam {
  HParam(std::string its_name, std::string its_value) : name(std::move(its_name)), value(std::move(its_value)) {}
  HParam(std::string its_name, const char* its_value) : name(std::move(its_name)), value(std::string(its_value)) {}
  template <typename Number>
  requires std::is_arithmetic_v<Number> HParam(std::string its_name, Number its_value) : name(std::move(its_name)) {
    if constexpr (std::is_same_v<Number, bool>)
      value = its_value;
    else
      value = static_cast<double>(its_value);
  }

  std::string name;
  std::variant<double, bool, std::string> value;
};

// Appends to a summary which hyperparameters and metrics (tags of scalars) the table has, and this run's values.
void AppendHParams(std::string& summary, std::span<const HParam> hparams, std::span<const std::string> metrics);

// Appends to a summary that this run has ended successfully, at `now`.
void AppendHParamsEnd(std::string& summary, absl::Time now);

}  // namespace muster
