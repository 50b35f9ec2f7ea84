// `muster reach`: whether this host and others reach each other. `muster run --hosts` runs it on each host before it
// starts anything; internal.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/launch/hosts/reach.h"

namespace muster {
namespace {

constexpr char kReachDescription[] = "Check that hosts reach each other (run by muster on each host of a run)";

// How long a listener stays, should nobody end it.
constexpr absl::Duration kListenTime = absl::Minutes(2);
constexpr absl::Duration kDialPatience = absl::Seconds(1);

struct ReachFlags {
  std::string listen;
  std::vector<std::string> dial;
};

int Listen(const std::string& address) {
  const absl::Status listened = AcceptForReach(address, kListenTime, [] {
    std::printf("listening\n%s\n", OwnAddresses().c_str());
    std::fflush(stdout);
  });
  if (listened.ok()) return 0;
  return UsageError("reach", absl::Status(listened.code(), absl::StrCat(std::string(listened.message()),
                                                                        "; this host has ", OwnAddresses())));
}

int Dial(const std::vector<std::string>& addresses) {
  const std::vector<Unreached> unreached = DialForReach(addresses, kDialPatience);
  for (const Unreached& one : unreached) std::printf("%s %s\n", one.address.c_str(), one.why.c_str());
  return unreached.empty() ? 0 : 1;
}

}  // namespace

void AddReachCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ReachFlags>();
  CLI::App* command = app.add_subcommand("reach", kReachDescription);
  command->group("");  // not in --help
  command->add_option("--listen", flags->listen, "Accept connections at this address")->type_name("ADDRESS");
  command->add_option("--dial", flags->dial, "Connect to these, and print those that can't be reached, with the reason")
      ->type_name("ADDRESS");
  command->callback([flags, &exit_code] {
    if (flags->listen.empty() == flags->dial.empty())
      exit_code = UsageError("reach", absl::InvalidArgumentError("accepted: --listen ADDRESS, or --dial ADDRESS..."));
    else
      exit_code = flags->dial.empty() ? Listen(flags->listen) : Dial(flags->dial);
  });
}

}  // namespace muster
