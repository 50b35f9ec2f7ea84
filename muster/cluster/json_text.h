// JSON that somebody wrote by hand, read with messages that help: where it stops being JSON, and what a value is where
// another kind was expected. Pure functions, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// InvalidArgument: `what` isn't JSON, with line and column.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view what);

// "5", "\"text\"", "true", "null", "a list", "an object": one line however large the value is.
std::string DescribeJson(const nlohmann::json& value);

}  // namespace muster
