// The way to a host by the user's own OpenSSH. Dials again where sshd drops connections (MaxStartups). Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/launch/engines/contact/contact_way.h"
#include "muster/launch/engines/ssh/ssh_command.h"

namespace muster {

class SshWay final : public ContactWay {
 public:
  explicit SshWay(SshSettings settings) : settings_(std::move(settings)) {}

  std::string name() const override { return "ssh"; }
  std::vector<std::string> WordsFor(const std::string& host) const override;
  WayEnd WhyEnded(const std::string& host, const ExitStatus& status, std::string_view errors) const override;

 private:
  const SshSettings settings_;
};

}  // namespace muster
