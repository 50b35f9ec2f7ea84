// The way to a host by a command of the user's own, `start` (docs/command_engine.md). Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/launch/engines/contact/contact_way.h"
#include "muster/launch/hosts/command_setting.h"

namespace muster {

// Returns what {NAME} stands for in commands about one host.
CommandValues ValuesOfHost(const CommandHosts& hosts, const std::string& host);

class CommandWay final : public ContactWay {
 public:
  explicit CommandWay(CommandHosts hosts) : hosts_(std::move(hosts)) {}

  std::string name() const override { return "start"; }
  std::vector<std::string> WordsFor(const std::string& host) const override;
  WayEnd WhyEnded(const std::string& host, const ExitStatus& status, std::string_view errors) const override;

 private:
  const CommandHosts hosts_;
};

}  // namespace muster
