// `muster ps`: a stand-alone parameter server without torch, and questions to running ones.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/log.h"
#include "muster/cluster/address.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/cluster/quoted.h"
#include "muster/store/calls/ask_ps.h"
#include "muster/store/service/store_status.h"
#include "muster/train/node/node.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

constexpr char kPsDescription[] = "Run a parameter server, or query or end a running one";

constexpr char kPsFooter[] = R"(
A ps needs no code of yours: the chief sends it the variables and the update rule. It ends automatically when training
has ended. The job's token is read from MUSTER_JOB_TOKEN; without a token the ps only serves loopback addresses, and
only processes of the same user on the same host. It writes checkpoints only into --model_dir, or, without one, only into
the first directory in which a chief saves.

Examples:
  muster ps --ps_hosts=127.0.0.1:2222 --worker_hosts=127.0.0.1:2223,127.0.0.1:2224 --job_name=ps --task_index=0
  muster ps --status 127.0.0.1:2222
  muster ps --status 127.0.0.1:2222 --json
  muster ps --shutdown 127.0.0.1:2222)";

constexpr absl::Duration kPatience = absl::Seconds(3);

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "muster ps: %s\n", std::string(status.message()).c_str());
  return static_cast<int>(ExitCodeOf(status));
}

int Serve(std::vector<std::string> arguments, const std::string& apply, const std::string& transport) {
  if (apply != "server" && apply != "auto")
    return UsageError(
        "ps", absl::InvalidArgumentError(absl::StrCat("--apply is ", Quoted(apply), "; accepted: server, auto")));
  if (!ParseTransportChoice(transport))
    return UsageError(
        "ps", absl::InvalidArgumentError(absl::StrCat("--transport is ", Quoted(transport), "; accepted: auto, tcp")));
  const Environment environment = ReadEnvironment();
  const auto task = TaskConfig::FromArguments(arguments, environment);
  if (!task.ok()) return UsageError("ps", task.status());
  if (!arguments.empty())
    return UsageError("ps", absl::InvalidArgumentError(
                                absl::StrCat("unknown argument ", Quoted(arguments[0]), "; see muster ps --help")));
  if (!task->is_ps())
    return UsageError("ps", absl::InvalidArgumentError(absl::StrCat(
                                "this process is ", task->task().ToString(),
                                ", not a ps; give --job_name=ps, or a TF_CONFIG whose task type is \"ps\"")));
  SetUpLog(environment.run_id ? "" : task->task().ToString());
  if (!task->notice().empty()) LogInfo(task->notice());
  auto node = Node::Create(*task, {.token = {.secret = environment.job_token.value_or(""),
                                             .cluster_file = environment.cluster_file.value_or(""),
                                             .tasks = {.allow_proxy = environment.allow_proxy}},
                                   .apply = ParseApplyChoice(apply).value(),
                                   .transport = ParseTransportChoice(transport).value(),
                                   .arena_fd = environment.arena_fd.value_or(""),
                                   .heard_file = environment.heard_file.value_or(""),
                                   .life = TaskLifeOf(environment)});
  if (!node.ok()) return Fail(node.status());
  if (const absl::Status status = (*node)->Join(); !status.ok()) return Fail(status);
  return 0;
}

absl::StatusOr<std::string> Ask(const std::string& address, StoreMethod method, std::string control) {
  return AskPs(address, {ReadEnvironment().job_token.value_or("")}, method, std::move(control), kPatience);
}

int ShowStatus(const std::string& address, bool json) {
  const auto status = Ask(address, StoreMethod::kStatus, "");
  if (!status.ok()) return Fail(status.status());
  if (json) {
    std::printf("%s\n", status->c_str());
    return 0;
  }
  const auto table = StatusTable(*status);
  if (!table.ok()) return Fail(table.status());
  std::fputs(table->c_str(), stdout);
  return 0;
}

int Shutdown(const std::string& address) {
  const auto answer =
      Ask(address, StoreMethod::kShutdown, Encode(ShutdownRequest{"asked for by muster ps --shutdown"}));
  if (!answer.ok()) return Fail(answer.status());
  std::printf("asked the ps at %s to end: it ends the training of all its workers\n", address.c_str());
  return 0;
}

struct PsOptions {
  std::string status;
  std::string shutdown;
  std::string apply = "auto";
  std::string transport = "auto";
  bool json = false;
};

int AskAsTold(const PsOptions& options, const std::vector<std::string>& remaining) {
  if (!remaining.empty())
    return UsageError("ps", absl::InvalidArgumentError(absl::StrCat("unknown argument ", Quoted(remaining[0]))));
  const bool wants_status = !options.status.empty();
  const std::string& address = wants_status ? options.status : options.shutdown;
  if (const auto parsed = ParseHostPort(address); !parsed.ok())
    return UsageError("ps", absl::InvalidArgumentError(
                                absl::StrCat(wants_status ? "--status: " : "--shutdown: ", parsed.status().message())));
  return wants_status ? ShowStatus(address, options.json) : Shutdown(address);
}

}  // namespace

void AddPsCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("ps", kPsDescription);
  auto options = std::make_shared<PsOptions>();
  CLI::Option* status =
      command->add_option("--status", options->status, "Show the state of the ps at ADDRESS")->type_name("ADDRESS");
  command->add_option("--shutdown", options->shutdown, "Ask the ps at ADDRESS to end; not with --status")
      ->type_name("ADDRESS")
      ->excludes(status);
  command
      ->add_option("--apply", options->apply,
                   "To serve, so not with --status: auto lets workers on this host apply their own updates in this "
                   "ps's memory (default); "
                   "server allows that to no worker")
      ->type_name("WHO")
      ->excludes(status);
  command
      ->add_option("--transport", options->transport,
                   "To serve, so not with --status: auto uses shared memory with workers on this host (default); tcp "
                   "uses TCP with all, and lets no worker apply its own updates")
      ->type_name("WHAT")
      ->excludes(status);
  command->add_flag("--json", options->json, "With --status: the whole page as JSON")->needs(status);
  command->allow_extras();
  command->footer("To serve, each as --flag=value or --flag value:\n" + TaskFlagsHelp() + kPsFooter);
  command->callback([command, options, &exit_code] {
    const bool serves = options->status.empty() && options->shutdown.empty();
    exit_code = serves ? Serve(command->remaining(), options->apply, options->transport)
                       : AskAsTold(*options, command->remaining());
  });
}

}  // namespace muster
