// The `muster` command: the subcommands of commands/command_table.h, each in a file of its own.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/hosts/remote_command.h"
#include "apps/muster/terminal/help_format.h"
#include "apps/muster/terminal/shown_host.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/os/descriptor_limit.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/version.h"
#include "muster/cluster/identity/flag_scan.h"
#include "muster/cluster/quoted.h"

namespace {

constexpr char kDescription[] = "Distributed training with parameter servers: start, watch and inspect clusters.";

constexpr char kFooter[] = R"(
Example:
  muster cluster --ps_hosts=127.0.0.1:2222 --worker_hosts=127.0.0.1:2223 --job_name=ps --task_index=0

`muster help COMMAND` explains a command, with examples.
Exit codes: 0 done; 2 wrong usage or configuration, nothing started; 1 failed; 138 worth retrying.)";

// Returns the innermost command that `words` begin with.
const CLI::App& CommandOf(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const auto below = command->get_subcommands([&word](const CLI::App* other) { return other->check_name(word); });
    if (below.empty()) break;
    command = below[0];
  }
  return *command;
}

// Returns "checkpoint diff" for that command; "" for `muster` itself.
std::string NameOf(const CLI::App& command) {
  std::string name;
  for (const CLI::App* one = &command; one->get_parent() != nullptr; one = one->get_parent())
    name.insert(0, one->get_name() + (name.empty() ? "" : " "));
  return name;
}

// Returns that flag of `command`, whose empty value means none if it names something.
std::optional<muster::KnownFlag> FlagOf(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw("--" + name);
  if (option == nullptr) return std::nullopt;
  const std::string type = option->get_type_name();
  return muster::KnownFlag{.name = name,
                           .accepted = type,
                           .is_switch = option->get_type_size() == 0,
                           .may_be_empty = type == "DIR" || type == "FILE" || type == "NAME" || type == "H1,H2,..."};
}

// Writes one line that names what was wrong, for which subcommand, and what is accepted.
int Complain(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> unknown = app.remaining(true);
  // Behind "--" stands the program of `muster run`, in which nothing is wrong.
  unknown.erase(std::find(unknown.begin(), unknown.end(), "--"), unknown.end());
  const CLI::App* command = &app;  // the innermost that was given
  std::string name;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands()[0];
    name += (name.empty() ? "" : " ") + command->get_name();
  }
  const std::string help = "see muster " + name + (name.empty() ? "--help" : " --help");
  const std::string written = unknown.empty() ? "" : unknown[0].substr(0, unknown[0].find('='));
  std::vector<std::string> names;
  for (const CLI::App* below : command->get_subcommands({}))
    if (!below->get_group().empty()) names.push_back(below->get_name());
  if (!names.empty()) {
    const std::string what =
        unknown.empty() ? "no command"
                        : "unknown command " + muster::Quoted(unknown[0]) + muster::NearestHint(written, names);
    return muster::UsageError(
        name, absl::InvalidArgumentError(what + "; accepted: " + absl::StrJoin(names, ", ") + "; " + help));
  }
  for (const CLI::Option* option : command->get_options())
    for (const std::string& flag : option->get_lnames()) names.push_back("--" + flag);
  const std::string what = unknown.empty()
                               ? error.what()
                               : "unknown argument " + muster::Quoted(unknown[0]) + muster::NearestHint(written, names);
  // A check of ours has said what is accepted.
  const bool says_accepted = what.find("accepted") != std::string::npos;
  return muster::UsageError(name, absl::InvalidArgumentError(what + (says_accepted ? "; " : "; accepted: ") + help));
}

// Turns a failed write of the output (a full disk behind `>`) into an error, so that cut output doesn't look complete.
int WrittenOut(int exit_code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  if (errno == EPIPE) return exit_code;  // the reader has closed the pipe
  const std::string why = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  muster::UsageError("", absl::InternalError("could not write all of the output" + why));
  return exit_code == 0 ? 1 : exit_code;
}

int RunThere(const std::string& name, const muster::RemoteCommand& command) {
  const auto end = muster::RunRemoteCommand(command);
  if (end.ok()) return end->exit_code;
  muster::UsageError(name, end.status());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  muster::TakeShownHost();
  muster::RaiseDescriptorLimit();
  CLI::App app(kDescription, "muster");
  app.require_subcommand(1);
  app.footer(kFooter);
  muster::UseHelpFormat(app);
  app.set_version_flag("--version", std::string("muster ") + muster::kMusterVersion, "Print the version and exit");
  int exit_code = 0;
  for (auto add : muster::kCommands) add(app, exit_code);
  const std::vector<std::string> arguments = muster::ArgumentsOf(argc, argv);
  const CLI::App& command = CommandOf(app, arguments);
  const auto takes_value = [&command](const std::string& word) {
    const CLI::Option* option = command.get_option_no_throw(word);
    return option != nullptr && option->get_items_expected_max() > 0;
  };
  auto remote = muster::RemoteCommandIn(arguments, takes_value);
  if (!remote.ok()) return muster::UsageError(NameOf(command), remote.status());
  if (remote->has_value()) return RunThere(NameOf(command), **remote);
  auto words = muster::SplitEmptyValues(arguments, [&](const std::string& name) { return FlagOf(command, name); });
  if (!words.ok()) return muster::UsageError(NameOf(command), words.status());
  std::reverse(words->begin(), words->end());  // as CLI11 takes them
  try {
    app.parse(*std::move(words));
  } catch (const CLI::Success& help) {  // --help or --version: prints it
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return Complain(app, error);
  }
  return WrittenOut(exit_code);
}
