#include "muster/cluster/identity/job_token.h"

#include "absl/strings/str_cat.h"
#include "muster/base/wrong_configuration.h"

namespace muster {

absl::Status CheckJobToken(const std::string& token) {
  if (token.empty() || token.size() >= kLeastJobToken) return absl::OkStatus();
  return WrongOptionError(absl::StrCat("MUSTER_JOB_TOKEN has ", token.size(), " characters; accepted: at least ",
                                       kLeastJobToken, ", drawn at random (openssl rand -hex 32 makes one)"));
}

}  // namespace muster
