// Reads handwritten JSON with helpful messages: where it stops being JSON, and what a value is if another kind was
// expected. Pure functions, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// InvalidArgument: `text` isn't JSON; the message names it as `what`, with line and column.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view what);

// Returns "5", "\"text\"", "true", "null", "a list" or "an object": one line, however large the value is.
std::string DescribeJson(const nlohmann::json& value);

}  // namespace muster
