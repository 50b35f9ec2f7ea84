#include "muster/launch/engines/ssh/ssh_way.h"

#include "muster/launch/engines/contact/first_contact.h"

namespace muster {

std::vector<std::string> SshWay::WordsFor(const std::string& host) const {
  return SshArguments(settings_, host, FirstContactCommand());
}

WayEnd SshWay::WhyEnded(const std::string& host, const ExitStatus& status, std::string_view errors) const {
  const SshFailure failure = WhySshFailed(status, errors);
  if (failure == SshFailure::kNone) return {};
  return {.again = failure == SshFailure::kDropped, .why = ExplainSshFailure(failure, host, errors)};
}

}  // namespace muster
