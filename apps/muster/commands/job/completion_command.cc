// `muster completion SHELL`: what makes bash, zsh or fish complete this command's words, made from its own table.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/help_format.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

constexpr char kCompletionDescription[] = "Print a completion script for bash, zsh or fish";

constexpr char kCompletionFooter[] = R"(
Completes commands, flags and ids of experiments; everything else as files.

Examples:
  source <(muster completion bash)                                   in ~/.bashrc
  muster completion zsh > "${fpath[1]}/_muster"                      once
  muster completion fish > ~/.config/fish/completions/muster.fish    once)";

struct Flag {
  std::vector<std::string> long_names, short_names;  // without "-"
  std::string description;
  bool takes_value;
};

// A command, or a subcommand of one.
struct Entry {
  std::string path;                                           // "checkpoint ls"; empty: the program itself
  std::vector<std::pair<std::string, std::string>> commands;  // name and description
  std::vector<Flag> flags;
  std::vector<std::string> values;  // allowed words of a positional
  bool takes_ids = false;
};

Entry EntryOf(const CLI::App& app, const std::string& path) {
  Entry entry = {.path = path};
  for (const CLI::App* below : app.get_subcommands({}))
    if (!below->get_group().empty()) entry.commands.emplace_back(below->get_name(), below->get_description());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      entry.takes_ids = entry.takes_ids || option->get_name() == "ID";
      if (option->get_name() == "SHELL") entry.values = {"bash", "zsh", "fish"};
      if (option->get_name() == "COMMAND") entry.values = VisibleCommands(*app.get_parent());
    }
    if (option->get_group().empty() || (option->get_lnames().empty() && option->get_snames().empty())) continue;
    entry.flags.push_back({.long_names = option->get_lnames(),
                           .short_names = option->get_snames(),
                           .description = option->get_description(),
                           .takes_value = option->get_items_expected_max() > 0});
  }
  return entry;
}

// Collects this command and all below it that aren't hidden.
void Collect(const CLI::App& app, const std::string& path, std::vector<Entry>& entries) {
  entries.push_back(EntryOf(app, path));
  for (const CLI::App* below : app.get_subcommands({}))
    if (!below->get_group().empty())
      Collect(*below, absl::StrCat(path, path.empty() ? "" : " ", below->get_name()), entries);
}

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// Returns the commands' paths as alternatives of a shell's `case`.
std::string Paths(const std::vector<Entry>& entries) {
  std::vector<std::string> paths;
  for (const Entry& entry : entries)
    if (!entry.path.empty()) paths.push_back(QuotedWord(entry.path));
  return absl::StrJoin(paths, "|");
}

std::vector<std::string> FlagsOf(const Flag& flag) {
  std::vector<std::string> words;
  for (const std::string& name : flag.long_names) words.push_back("--" + name);
  for (const std::string& name : flag.short_names) words.push_back("-" + name);
  return words;
}

constexpr char kBashFrame[] = R"(# bash: source <(muster completion bash)
_muster() {
  local word=${COMP_WORDS[COMP_CWORD]} command= next= words= flags= ids= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="${command:+$command }${COMP_WORDS[i]}"
    case "$next" in $paths) command=$next ;; esac
  done
  case "$command" in
$cases  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  else
    [[ -n $ids ]] && words=$("$1" ls --all --last 100 --ids 2>/dev/null)
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  fi
}
complete -o default -F _muster muster
)";

std::string BashScript(const std::vector<Entry>& entries) {
  std::string cases;
  for (const Entry& entry : entries) {
    std::vector<std::string> words = entry.values;
    for (const auto& [name, description] : entry.commands) words.push_back(name);
    std::vector<std::string> flags;
    for (const Flag& flag : entry.flags)
      for (const std::string& word : FlagsOf(flag)) flags.push_back(word);
    absl::StrAppend(&cases, "    ", QuotedWord(entry.path), ") words=", QuotedWord(absl::StrJoin(words, " ")),
                    " flags=", QuotedWord(absl::StrJoin(flags, " ")), entry.takes_ids ? " ids=1" : "", " ;;\n");
  }
  return absl::StrReplaceAll(kBashFrame, {{"$paths", Paths(entries)}, {"$cases", cases}});
}

constexpr char kZshFrame[] = R"(#compdef muster
# zsh: a file _muster in a folder of $fpath, or source <(muster completion zsh)
_muster() {
  local command= next= i
  local -a candidates flags ids
  for ((i = 2; i < CURRENT; i++)); do
    next="${command:+$command }${words[i]}"
    case "$next" in ($paths) command=$next ;; esac
  done
  case "$command" in
$cases  esac
  if [[ ${words[CURRENT]} == -* ]]; then
    _describe -o flag flags
  elif (( ${#candidates} )); then
    _describe word candidates
  elif (( ${#ids} )); then
    compadd -- $("${words[1]}" ls --all --last 100 --ids 2>/dev/null)
  else
    _files
  fi
}
if [[ ${funcstack[1]} == _muster ]]; then _muster "$@"; else compdef _muster muster; fi
)";

// Returns 'name:description', as _describe expects it.
std::string Described(const std::string& name, const std::string& description) {
  return QuotedWord(absl::StrCat(absl::StrReplaceAll(name, {{":", "\\:"}}), ":", description));
}

std::string ZshScript(const std::vector<Entry>& entries) {
  std::string cases;
  for (const Entry& entry : entries) {
    std::vector<std::string> words = entry.values;
    for (const auto& [name, description] : entry.commands) words.push_back(Described(name, description));
    std::vector<std::string> flags;
    for (const Flag& flag : entry.flags)
      for (const std::string& word : FlagsOf(flag)) flags.push_back(Described(word, flag.description));
    absl::StrAppend(&cases, "    (", QuotedWord(entry.path), ") candidates=(", absl::StrJoin(words, " "), ") flags=(",
                    absl::StrJoin(flags, " "), ")", entry.takes_ids ? " ids=(1)" : "", " ;;\n");
  }
  return absl::StrReplaceAll(kZshFrame, {{"$paths", Paths(entries)}, {"$cases", cases}});
}

constexpr char kFishFrame[] =
    R"(# fish: a file muster.fish in ~/.config/fish/completions, or muster completion fish | source
function __muster_at
    set -l command ''
    set -l given (commandline -opc)
    set -e given[1]
    for word in $given
        set -l next (string trim -- "$command $word")
        if contains -- $next $paths
            set command $next
        end
    end
    test "$command" = "$argv[1]"
end
)";

std::string FishScript(const std::vector<Entry>& entries) {
  std::vector<std::string> paths;
  for (const Entry& entry : entries)
    if (!entry.path.empty()) paths.push_back(FishQuoted(entry.path));
  std::string script = absl::StrReplaceAll(kFishFrame, {{"$paths", absl::StrJoin(paths, " ")}});
  for (const Entry& entry : entries) {
    const std::string here = absl::StrCat("complete -c muster -n \"__muster_at '", entry.path, "'\"");
    for (const auto& [name, description] : entry.commands)
      absl::StrAppend(&script, here, " -f -a ", name, " -d ", FishQuoted(description), "\n");
    for (const std::string& value : entry.values) absl::StrAppend(&script, here, " -f -a ", value, "\n");
    for (const Flag& flag : entry.flags) {
      absl::StrAppend(&script, here);
      for (const std::string& name : flag.long_names) absl::StrAppend(&script, " -l ", name);
      for (const std::string& name : flag.short_names) absl::StrAppend(&script, " -s ", name);
      absl::StrAppend(&script, flag.takes_value ? " -r" : "", " -d ", FishQuoted(flag.description), "\n");
    }
    if (entry.takes_ids) absl::StrAppend(&script, here, " -f -a '(muster ls --all --last 100 --ids 2>/dev/null)'\n");
  }
  return script;
}

int Print(const CLI::App& app, const std::string& shell) {
  std::vector<Entry> entries;
  Collect(app, "", entries);
  std::string script;
  if (shell == "bash") script = BashScript(entries);
  if (shell == "zsh") script = ZshScript(entries);
  if (shell == "fish") script = FishScript(entries);
  if (script.empty())
    return UsageError("completion",
                      absl::InvalidArgumentError(absl::StrCat("'", shell, "': accepted are bash, zsh, fish")));
  std::fputs(script.c_str(), stdout);
  return 0;
}

}  // namespace

void AddCompletionCommand(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", kCompletionDescription);
  command->add_option("SHELL", *shell, "bash, zsh or fish")->type_name("")->required();
  command->footer(kCompletionFooter);
  command->callback([&app, shell, &exit_code] { exit_code = Print(app, *shell); });
}

}  // namespace muster
