// `muster agent`: what `muster run` starts on each host of a run over ssh or Slurm, a job of Ray on its nodes
// and one of Kubernetes in its pods. Not
// started by users: --help doesn't name it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/receive_place.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/clock.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/agent_server/agent_environment.h"
#include "muster/launch/agent_server/agent_folder.h"
#include "muster/launch/agent_server/agent_server.h"
#include "muster/launch/agent_server/agent_start.h"
#include "muster/launch/agent_server/stream_bridge.h"
#include "muster/launch/engines/kubernetes/pod_again.h"
#include "muster/launch/project/remove_folder.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/supervise/ending_signals.h"
#include "muster/launch/watch/usage.h"
#include "muster/transport/io/tcp_address.h"

namespace muster {
namespace {

constexpr char kAgentDescription[] =
    "Run the tasks of a job on this host for a supervisor elsewhere (started over ssh, by Slurm, Ray, Spark or in a "
    "pod)";

constexpr char kAgentFooter[] = R"(
An agent starts, watches and ends the tasks of one job on its host, as the job's supervisor on another host tells it. It
outlives the ssh connection that started it: without a supervisor for the grace it ends its tasks, then itself.

--attach connects stdin and stdout with the job's agent, which it starts if there is none. What is spoken there is the
protocol of docs/agents.md, not for people. --serve is the agent itself; with --rendezvous it connects to its
supervisor, where hosts reach that: so it is started by Slurm on all nodes, whose names it has in a variable. With
--until_closed it ends when its stdin is closed, as that of a child of a process that has died, and the rendezvous is its
own file, which it removes. The agent's folder is /tmp/muster-UID/agents/JOB, or that of --place; its file `log` has what
the agent couldn't tell its supervisor. SIGTERM to an agent ends its tasks gently, and kills them 3 s later, or after --ending. With
--passes_signals so does SIGTERM to the process that waits for the agent, as the first one of a container. --lookup prints the addresses of a host's name.

Example, as muster itself runs it:
  ssh HOST muster agent --attach JOB --grace 30)";

// The guard of an agent that has ended is gone within some seconds.
constexpr absl::Duration kLockPatience = absl::Seconds(20);
constexpr absl::Duration kStartPatience = absl::Seconds(30);
constexpr int kLeastGraceSeconds = 10;

struct AgentFlags {
  std::string attach;
  std::string serve;
  std::string place;
  std::string rendezvous;
  std::string host;
  std::string host_variable;
  int grace_seconds = 30;
  int first_seconds = 0;
  int ending_seconds = 3;
  bool passes_signals = false;
  std::string lookup, make_pod;
  bool supervisor_in_job = false;
  bool until_closed = false;
};

int AgentFailed(const absl::Status& status) {
  std::fprintf(stderr, "muster agent: %s\n", std::string(status.message()).c_str());
  return 1;
}

void AgentLog(const std::string& job, const std::string& line) {
  const std::string when = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", RealClock().Now(), absl::UTCTimeZone());
  std::fprintf(stderr, "%s muster agent %s: %s\n", when.c_str(), job.c_str(), line.c_str());
}

absl::StatusOr<Socket> ConnectOrStart(const std::string& job, int grace_seconds) {
  ASSIGN_OR_RETURN(const AgentFolder folder, AgentFolder::Open(job));
  absl::StatusOr<Socket> connection = folder.Connect();
  if (!absl::IsNotFound(connection.status())) return connection;
  RETURN_IF_ERROR(folder.LockStart(kStartPatience));
  connection = folder.Connect();  // to one that was started meanwhile
  if (!absl::IsNotFound(connection.status())) return connection;
  ASSIGN_OR_RETURN(const Socket log, folder.OpenLog());
  // Not by its path: hosts that share a home may put the same build there at the same time.
  const absl::Status started =
      StartDetached("/proc/self/exe", {"muster", "agent", "--serve", job, "--grace", absl::StrCat(grace_seconds)},
                    log.fd(), kStartPatience);
  if (!started.ok())
    return absl::Status(started.code(), absl::StrCat("the agent of job ", job, " didn't start: ", started.message(),
                                                     "; see ", folder.PathOf(AgentFolder::kLogName)));
  return folder.Connect();
}

int Attach(const std::string& job, int grace_seconds) {
  if (isatty(STDIN_FILENO) != 0)
    return UsageError("agent", absl::InvalidArgumentError(
                                   "stdin is a terminal, but programs speak here, not people: muster run starts agents "
                                   "over ssh by itself; see muster agent --help"));
  signal(SIGPIPE, SIG_IGN);
  absl::StatusOr<Socket> connection = ConnectOrStart(job, grace_seconds);
  if (!connection.ok()) return AgentFailed(connection.status());
  FdLoop loop(RealClock());
  StreamBridge bridge(loop, STDIN_FILENO, STDOUT_FILENO, connection->fd());
  while (!bridge.done()) loop.RunOnce(absl::InfiniteFuture());
  return 0;
}

// Removes the copy of the code in which this host's tasks of the job worked, if there is one. A job whose supervisor
// hasn't ended it may get another agent, which works there again.
void RemoveCode(const std::string& job) {
  const absl::StatusOr<ReceivePlace> place = ReceivePlaceHere();
  if (!place.ok()) return;  // so there is no copy
  if (const absl::Status removed = RemoveFolder(place->work(job)); !removed.ok())
    AgentLog(job, std::string(removed.message()));
}

AgentServerOptions OptionsOf(const AgentFlags& flags, mode_t umask) {
  const std::vector<std::string> own = OwnEnvironment();
  const std::string& job = flags.serve;
  AgentServerOptions options = {.job = job, .address = ReachedAddress(own)};
  options.limits.grace = absl::Seconds(flags.grace_seconds);
  options.limits.first = absl::Seconds(flags.first_seconds);
  options.limits.signalled = absl::Seconds(flags.ending_seconds);
  options.rendezvous = flags.rendezvous;
  options.host = flags.host;
  options.supervisor_in_job = flags.supervisor_in_job;
  options.log = [job](const std::string& line) { AgentLog(job, line); };
  std::error_code no_proc;
  const std::filesystem::path folder_of_muster = std::filesystem::read_symlink("/proc/self/exe", no_proc).parent_path();
  options.backend.environment = TaskEnvironment(own, folder_of_muster.string());
  // Another host of this home may have put the same build there anew meanwhile.
  options.muster = (folder_of_muster / "muster").string();
  options.backend.resident_bytes = [](const std::vector<pid_t>& pids) { return ResidentBytesOf(pids); };
  options.backend.umask = umask;
  options.job_ended = [job] { RemoveCode(job); };
  return options;
}

absl::StatusOr<AgentServer::Place> PlaceOf(const AgentFlags& flags) {
  ASSIGN_OR_RETURN(AgentFolder folder, AgentFolder::Open(flags.place.empty() ? flags.serve : flags.place));
  RETURN_IF_ERROR(folder.Lock(kLockPatience));
  ASSIGN_OR_RETURN(AgentServer::Place place, AgentServer::Open(std::move(folder)));
  if (flags.until_closed) place.until_closed = Socket(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, kReadinessFd + 1));
  return place;
}

// Reads what nobody should write, too, so that only the end counts.
bool IsClosed(int fd) {
  char piece[256];
  return Uninterrupted([&] { return read(fd, piece, sizeof piece); }) == 0;
}

int DoesNotServe(const std::string& job, const absl::Status& why) {
  TellReadiness(why);
  AgentLog(job, std::string(why.message()));
  return 1;
}

// Runs one life of the agent to its end, and returns the exit code of its process.
int Live(const AgentServerOptions& options, const AgentServer::Place& place, std::unique_ptr<Keeper> keeper,
         EndingSignals& signals) {
  const bool is_first = keeper->life() == 1;
  FdLoop loop(BootClock());
  const auto server = AgentServer::Start(options, place, std::move(keeper), loop);
  if (!server.ok() && is_first) return DoesNotServe(options.job, server.status());
  if (!server.ok()) {
    AgentLog(options.job, std::string(server.status().message()));
    return 1;
  }
  if (is_first) TellReadiness(absl::OkStatus());
  AgentServer& agent = **server;
  loop.Watch(signals.fd(), POLLIN, [&](short) {
    if (signals.Take() == 0 || agent.ending()) return;
    agent.OnSignal();
    if (agent.ending()) AgentLog(options.job, "is told to end by a signal, and ends its tasks");
  });
  const int until_closed = place.until_closed.fd();
  if (place.until_closed.valid())
    loop.Watch(until_closed, POLLIN, [&](short) {
      if (!IsClosed(until_closed)) return;
      loop.SetEvents(until_closed, 0);
      AgentLog(options.job, "what has started it is gone: it ends its tasks");
      agent.EndNow();
    });
  bool told = false;
  while (!agent.done()) {
    loop.RunOnce(agent.deadline());
    const bool was_ending = agent.ending();
    agent.OnTime();
    told |= was_ending;
    if (agent.ending() && !std::exchange(told, true))
      AgentLog(options.job, absl::StrCat("no supervisor has answered for ", absl::FormatDuration(agent.patience()),
                                         ": it ends its tasks"));
  }
  if (agent.lost_keeper()) AgentLog(options.job, "its guard was killed, and the tasks with it: it ends");
  loop.Forget(signals.fd());
  if (place.until_closed.valid()) {
    loop.Forget(until_closed);
    unlink(options.rendezvous.c_str());
  }
  return agent.lost_keeper() ? 1 : 0;
}

// Its stderr was closed with the first life's.
int LiveAgain(const AgentServerOptions& options, const AgentServer::Place& place, std::unique_ptr<Keeper> keeper) {
  if (const absl::StatusOr<Socket> log = place.folder.OpenLog(); log.ok())
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(log->fd(), fd);
  AgentLog(options.job, absl::StrCat("was killed; its life ", keeper->life(), " goes on with its tasks"));
  EndingSignals signals;
  return Live(options, place, std::move(keeper), signals);
}

int Serve(const AgentFlags& flags) {
  const std::string& job = flags.serve;
  if (!flags.rendezvous.empty()) {
    const absl::Status went_on = GoOnInChild(
        job, {.own_file = flags.until_closed ? flags.rendezvous : "", .passes_signals = flags.passes_signals});
    if (!went_on.ok()) return DoesNotServe(job, went_on);
  }
  const PrivateFiles private_files;
  signal(SIGHUP, SIG_IGN);  // as under nohup: there is no terminal, and tasks inherit it
  const AgentServerOptions options = OptionsOf(flags, private_files.users_umask());
  const absl::StatusOr<AgentServer::Place> place = PlaceOf(flags);
  if (!place.ok()) return DoesNotServe(job, place.status());
  EndingSignals signals;  // before the keeper, so that next lives begin with these signals blocked, too
  auto keeper = AgentServer::ForkKeeper(
      job, *place, [&](std::unique_ptr<Keeper> its) { return LiveAgain(options, *place, std::move(its)); });
  if (!keeper.ok()) return DoesNotServe(job, keeper.status());
  return Live(options, *place, *std::move(keeper), signals);
}

// Tells an agent, which starts this because a resolver may let it wait.
int LookUp(const std::string& host) {
  const absl::StatusOr<std::vector<Endpoint>> found = Resolve({.host = host, .port = "1"}, /*numeric_only=*/false);
  if (!found.ok()) {
    std::fprintf(stderr, "%s\n", std::string(found.status().message()).c_str());
    return 1;
  }
  for (const Endpoint& endpoint : *found) std::printf("%s\n", endpoint.ToString().c_str());
  return 0;
}

int RunAgent(const AgentFlags& flags) {
  if (!flags.lookup.empty()) return LookUp(flags.lookup);
  if (!flags.make_pod.empty()) {
    const absl::Status made = MakePodAgain(OwnEnvironment(), flags.make_pod);
    return made.ok() ? 0 : AgentFailed(made);
  }
  if (flags.serve.empty() && flags.attach.empty())
    return UsageError("agent",
                      absl::InvalidArgumentError(
                          "no job; accepted: --attach JOB, as muster run does over ssh; see muster agent --help"));
  const bool serves = !flags.serve.empty();
  const std::string& job = serves ? flags.serve : flags.attach;
  for (const std::string& name : {job, flags.place.empty() ? job : flags.place})
    if (const absl::Status valid = CheckAgentJob(name); !valid.ok()) return UsageError("agent", valid);
  if (flags.grace_seconds < kLeastGraceSeconds)
    return UsageError(
        "agent", absl::InvalidArgumentError(absl::StrCat(
                     "--grace ", flags.grace_seconds, ": accepted is a number of seconds from ", kLeastGraceSeconds)));
  AgentFlags named = flags;
  if (!flags.host_variable.empty()) named.host = OwnVariable(flags.host_variable);
  if (flags.rendezvous.empty() != named.host.empty())
    return UsageError("agent", absl::InvalidArgumentError(
                                   "--rendezvous is accepted with --host, or with a --host_variable that is set"));
  if (flags.until_closed && flags.rendezvous.empty())
    return UsageError("agent", absl::InvalidArgumentError("--until_closed is accepted with --rendezvous"));
  return serves ? Serve(named) : Attach(job, flags.grace_seconds);
}

}  // namespace

void AddAgentCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<AgentFlags>();
  CLI::App* command = app.add_subcommand("agent", kAgentDescription);
  command->group("");  // not in --help
  CLI::Option* attach =
      command->add_option("--attach", flags->attach, "Connect stdin and stdout with the job's agent")->type_name("JOB");
  command->add_option("--serve", flags->serve, "Be the job's agent; --attach starts it so")
      ->type_name("JOB")
      ->excludes(attach);
  command
      ->add_option("--place", flags->place,
                   "With --rendezvous: the name of its folder, where the host may have several agents of the job")
      ->type_name("NAME")
      ->excludes(attach);
  command
      ->add_option("--rendezvous", flags->rendezvous,
                   "With --serve: connect to the supervisor over TCP, as this file says")
      ->type_name("FILE")
      ->excludes(attach);
  CLI::Option* host = command->add_option("--host", flags->host, "With --rendezvous: the name of this host in the run")
                          ->type_name("NAME");
  command
      ->add_option("--host_variable", flags->host_variable,
                   "Instead of --host: the environment variable that has the name")
      ->type_name("VARIABLE")
      ->excludes(host);
  command->add_option("--grace", flags->grace_seconds, "Go on without a supervisor for this long (default 30)")
      ->type_name("SECONDS");
  command->add_option("--first", flags->first_seconds, "Wait so long for a first supervisor, if not for the grace")
      ->check(CLI::Range(0, 1000000).description(""))
      ->type_name("SECONDS");
  command->add_option("--ending", flags->ending_seconds, "Give tasks so long to end after a signal (default 3)")
      ->check(CLI::Range(3, 1000000).description(""))
      ->type_name("SECONDS");
  command->add_flag("--passes_signals", flags->passes_signals,
                    "With --rendezvous: the process that waits for the agent is the only one that gets signals");
  command->add_option("--lookup", flags->lookup, "Print the addresses of this host, and do nothing else")
      ->type_name("HOST");
  command->add_option("--make_pod", flags->make_pod, "Make this host's pod again in the job of this pod, and end")
      ->type_name("HOST");
  command->add_flag("--supervisor_in_job", flags->supervisor_in_job,
                    "The supervisor gets the job's signals, too, and ends the tasks");
  command->add_flag("--until_closed", flags->until_closed, "End when stdin is closed; the rendezvous is its own file");
  command->footer(kAgentFooter);
  command->callback([flags, &exit_code] { exit_code = RunAgent(*flags); });
}

}  // namespace muster
