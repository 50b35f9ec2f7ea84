#include "muster/launch/agent/agent_limits.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

absl::Status Before(absl::string_view first, absl::Duration a, absl::string_view second, absl::Duration b) {
  if (a > absl::ZeroDuration() && a < b) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(first, " (", absl::FormatDuration(a),
                                                 ") must be above 0 and less than ", second, " (",
                                                 absl::FormatDuration(b), ")"));
}

}  // namespace

absl::Status CheckAgentLimits(const AgentLimits& limits) {
  RETURN_IF_ERROR(Before("the silence after which a frame goes", limits.silence, "the age of the supervisor number",
                         limits.number_age));
  RETURN_IF_ERROR(Before("the age of the supervisor number", limits.number_age, "the time until a host is suspect",
                         limits.suspect));
  RETURN_IF_ERROR(Before("the time until a host is suspect", limits.suspect, "the grace", limits.grace));
  // After the last frame of a supervisor that has been replaced, an agent may go on for number_age + grace + ending.
  return Before("the age of the supervisor number and the time to end tasks", limits.number_age + limits.ending,
                "the time from the grace's end until a host is lost", limits.lost_margin);
}

}  // namespace muster
