#include "muster/launch/experiment/refused_attempt.h"

#include <unistd.h>

#include "absl/strings/cord.h"
#include "muster/base/absl_view.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

constexpr char kPayload[] = "muster/refused-attempt";

}  // namespace

absl::Status RefusedAttempt(const std::string& why) {
  absl::Status status = absl::FailedPreconditionError(why);
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

bool IsRefusedAttempt(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

bool TakeBackRefused(const Home& home, Registry& registry, const ExperimentId& id, const absl::Status& why) {
  if (!IsRefusedAttempt(why)) return false;
  // First, as whoever waits for the end looks for it then.
  const std::string path = home.refused(id);
  if (!ReplaceFile(path, std::string(why.message()), Durability::kProcess).ok()) return false;
  if (registry.TakeRestartBack(id).ok()) return true;
  unlink(path.c_str());
  return false;
}

}  // namespace muster
