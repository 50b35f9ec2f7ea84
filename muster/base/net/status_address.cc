#include "muster/base/net/status_address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<StatusAddress> ParseStatusAddress(absl::string_view text) {
  StatusAddress address;
  const size_t colon = text.rfind(':');
  const absl::string_view port = colon == absl::string_view::npos ? text : text.substr(colon + 1);
  const bool named = colon != absl::string_view::npos;
  if (named) address.host = std::string(text.substr(0, colon));
  const bool digits = !port.empty() && port.find_first_not_of("0123456789") == absl::string_view::npos;
  if (digits && !address.host.empty() && absl::SimpleAtoi(port, &address.port) && address.port <= 65535) return address;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is no place for a status page; accepted: a port from 0 (any free one) to 65535, or HOST:PORT"));
}

}  // namespace muster
