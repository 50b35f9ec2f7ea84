// A ps's status, as JSON (the answer to kStatus) and as the table of `muster ps --status`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/store/service/store_service.h"

namespace muster {

// One JSON object; keys in docs/store/README.md.
std::string StatusJson(const StoreService::View& view);

// The same for people, from the JSON text. InvalidArgument: the text isn't such JSON.
absl::StatusOr<std::string> StatusTable(const std::string& json);

}  // namespace muster
