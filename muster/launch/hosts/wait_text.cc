#include "muster/launch/hosts/wait_text.h"

#include "absl/strings/numbers.h"

namespace muster {

std::optional<absl::Duration> ParseWait(const std::string& text, absl::Duration least, absl::Duration most) {
  double seconds = 0;
  absl::Duration wait;
  if (absl::SimpleAtod(text, &seconds))
    wait = absl::Seconds(seconds);
  else if (!absl::ParseDuration(text, &wait))
    return std::nullopt;
  // Seconds that are no number are in no order with a limit.
  if (!(wait >= least) || wait > most) return std::nullopt;
  return wait;
}

}  // namespace muster
