// JSON from files, read without trust: a key given twice (of which a lenient reader keeps either), nesting beyond what
// the format has, bytes that aren't UTF-8 are errors. Pure functions, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// InvalidArgument says what and at which byte.
absl::StatusOr<nlohmann::json> ParseStrictJson(std::string_view text, int max_depth);

// `text` as a JSON string with its quotes. InvalidArgument if it isn't UTF-8.
absl::StatusOr<std::string> QuoteJson(std::string_view text);

}  // namespace muster
