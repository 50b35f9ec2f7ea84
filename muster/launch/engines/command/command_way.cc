#include "muster/launch/engines/command/command_way.h"

#include "absl/strings/str_cat.h"
#include "muster/base/text/last_line.h"
#include "muster/launch/engines/contact/first_contact.h"

namespace muster {

CommandValues ValuesOfHost(const CommandHosts& hosts, const std::string& host) {
  CommandValues values = hosts.values;
  values["host"] = host;
  if (const auto id = hosts.ids.find(host); id != hosts.ids.end()) values["id"] = id->second;
  if (const auto address = hosts.addresses.find(host); address != hosts.addresses.end())
    values["address"] = address->second;
  return values;
}

std::vector<std::string> CommandWay::WordsFor(const std::string& host) const {
  CommandValues values = ValuesOfHost(hosts_, host);
  values[kAgentLine] = FirstContactCommand();
  return ExpandCommand(hosts_.setting.start.argv, values, FirstContactWords());
}

// Its exit codes may be those of what runs on the host, so that none is known to be its own.
WayEnd CommandWay::WhyEnded(const std::string& host, const ExitStatus& status, std::string_view errors) const {
  CommandValues values = ValuesOfHost(hosts_, host);
  values[kAgentLine] = absl::StrCat("{", kAgentLine, "}");
  const std::vector<std::string> words =
      ExpandCommand(hosts_.setting.start.argv, values, {absl::StrCat("{", kAgentWords, "}")});
  const std::string last = LastLineOf(errors);
  return {.why = absl::StrCat(host, " has no agent: ", TypedCommand(words), " ", status.ToString(), " before one spoke",
                              last.empty() ? "" : absl::StrCat(" (", last, ")"))};
}

}  // namespace muster
