#include "muster/cluster/json_text.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// Returns "line 2, column 7" (bytes, from 1) of the byte before which parsing stopped.
std::string Position(std::string_view text, size_t byte) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
  }
  return absl::StrCat("line ", line, ", column ", column);
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view what) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(what), ": not JSON at ", Position(text, error.byte),
                                                   ": ", Quoted(text), "; accepted: JSON"));
  } catch (const nlohmann::json::exception& error) {  // a number that doesn't fit a double
    return absl::InvalidArgumentError(absl::StrCat(std::string(what), ": ", Quoted(error.what()), "; accepted: JSON"));
  }
}

std::string DescribeJson(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace muster
