#include "apps/muster/hosts/foreground_hosts.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/supervise/ending_signals.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {
namespace {

void SayOnStderr(const std::string& line) { std::fprintf(stderr, "muster run: %s\n", line.c_str()); }

}  // namespace

std::vector<Host> HostsToShow(const CommandSetting& commands) {
  std::vector<Host> hosts;
  for (int i = 1; i <= commands.hosts; ++i) hosts.push_back({.name = absl::StrCat("host", i)});
  return hosts;
}

absl::StatusOr<std::unique_ptr<HeldHosts>> AcquireForForeground(const CommandSetting& commands,
                                                                const std::vector<std::string>& environment) {
  const PrivateFiles private_files;
  const std::optional<std::string> path = ReadEnvironment().home;
  if (!path.has_value())
    return absl::InvalidArgumentError(
        "--on command: neither MUSTER_HOME nor HOME is set; accepted: MUSTER_HOME with a folder, where muster keeps "
        "which hosts it has to give back");
  ASSIGN_OR_RETURN(const Home home, Home::Open(*path, PosixFileSystem()));
  for (const std::string& line : GiveBackLeft(
           home.held(), environment, [](const std::string& run_id) { KillProcessesOfRun(run_id); }, RealClock()))
    SayOnStderr(line);
  const std::string name = absl::StrCat("run-", getpid());
  const HeldOrder order{.folder = home.held(),
                        .who = absl::StrCat("muster run, process ", getpid()),
                        .setting = commands,
                        .values = {{"hosts", absl::StrCat(commands.hosts)},
                                   {"cpus", "0"},
                                   {"mem_bytes", "0"},
                                   {"gpus", "0"},
                                   {"experiment", name},
                                   {"project", "muster-run"}},
                        .environment = environment,
                        .say_at_end = SayOnStderr};
  // Until the hosts are given back, a signal ends the run, and not this process alone.
  BlockEndingSignals();
  FdLoop loop(RealClock());
  EndingSignals signals;
  int interrupts = 0;
  loop.Watch(signals.fd(), POLLIN, [&](short) { interrupts += signals.Take(); });
  std::string waits;
  const HeldCalls calls{
      .say = SayOnStderr,
      .waits =
          [&waits](const std::string& why) {
            if (why.empty() || why == waits) return;
            waits = why;
            SayOnStderr(absl::StrCat("waiting for hosts: ", why));
          },
      .deadline = [] { return absl::InfiniteFuture(); },
      .on_time = [&interrupts] { return interrupts == 0 ? absl::OkStatus() : absl::CancelledError("interrupted"); }};
  auto held = HeldHosts::Acquire(order, calls, loop, RealClock());
  loop.Forget(signals.fd());
  if (held.ok() || absl::IsCancelled(held.status())) return held;
  return absl::UnavailableError(held.status().message());
}

}  // namespace muster
