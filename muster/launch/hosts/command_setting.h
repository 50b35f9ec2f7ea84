// The commands by which a user's own programs get hosts for a run, reach them and give them back: the engine `command`
// (docs/command_engine.md). Templates are lists of words in which {NAME} stands for a value; no shell reads them. Plain
// values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/launch/hosts/host_list.h"

namespace muster {

// The engine that gets its hosts by such commands.
inline constexpr char kCommandEngine[] = "command";
inline constexpr int kMostCommandHosts = 1000;

enum class CommandPart {
  kAcquire,  // gets the hosts
  kStart,    // leads to a shell on one of them
  kState,    // says whether one is still there
  kRelease,  // gives all of them back
};
inline constexpr CommandPart kCommandParts[] = {CommandPart::kAcquire, CommandPart::kStart, CommandPart::kState,
                                                CommandPart::kRelease};

// "acquire".
std::string_view Name(CommandPart part);

struct CommandTemplate {
  std::vector<std::string> argv;  // [0] is the program; empty: there is none
  absl::Duration time_limit;
  std::vector<int> retry_exit;    // of acquire: not now, ask again
  std::vector<int> refused_exit;  // of acquire: not now and not later
  std::vector<int> gone_exit;     // of state: the host isn't the run's any more; of release: nothing is held any more

  bool operator==(const CommandTemplate&) const = default;
};

struct CommandSetting {
  int hosts = 1;
  CommandTemplate acquire, start, state, release;  // acquire and start are never empty
  std::string folder;                              // in which they run, absolute

  const CommandTemplate& Of(CommandPart part) const;
  CommandTemplate& Of(CommandPart part);
  bool operator==(const CommandSetting&) const = default;
};

// What a command has until somebody says otherwise.
absl::Duration UsualTimeLimit(CommandPart part);

// The values of placeholders, by name.
using CommandValues = std::map<std::string, std::string>;

// Returns the placeholders of this command's words, for messages and checks.
std::vector<std::string> PlaceholdersOf(CommandPart part);
// Words of `start` that stand for what is to run on the host: as a program with its arguments, and as one text for a
// shell there.
inline constexpr char kAgentWords[] = "agent";
inline constexpr char kAgentLine[] = "agent_line";

// InvalidArgument says what is wrong with these words, and what is accepted.
[[nodiscard]] absl::Status CheckCommandWords(CommandPart part, const std::vector<std::string>& argv);
// Returns whether {NAME} is among the words.
bool UsesPlaceholder(const std::vector<std::string>& argv, const std::string& name);
// Returns the words with their values. A placeholder without a value becomes "". The word {agent} becomes all of
// `agent`.
std::vector<std::string> ExpandCommand(const std::vector<std::string>& argv, const CommandValues& values,
                                       const std::vector<std::string>& agent = {});
// Returns the words as they could be typed into a shell.
std::string TypedCommand(const std::vector<std::string>& words);

// Where hosts are that acquire has got.
struct CommandHosts {
  CommandSetting setting;
  CommandValues values;  // of all commands: job, experiment, project
  // Those of hosts, by name, as far as acquire has said them.
  std::map<std::string, std::string> ids, addresses;
};

}  // namespace muster
