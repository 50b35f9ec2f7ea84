// Reads untrusted JSON from files. Refuses a key given twice (of which a lenient reader keeps either), nesting deeper
// than the format has, and bytes that aren't UTF-8. Pure functions, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// InvalidArgument names the error and its byte.
absl::StatusOr<nlohmann::json> ParseStrictJson(std::string_view text, int max_depth);

// Returns `text` as a JSON string with its quotes. InvalidArgument if it isn't UTF-8.
absl::StatusOr<std::string> QuoteJson(std::string_view text);

}  // namespace muster
