#include "muster/launch/hosts/command_setting.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

bool IsOfName(char c) { return absl::ascii_islower(static_cast<unsigned char>(c)) || c == '_'; }

// Returns the length of the placeholder that begins at `at`; 0: none does. Other braces stand for themselves, and so do
// doubled ones, with which Docker's own templates are full.
size_t PlaceholderAt(std::string_view word, size_t at) {
  if (word[at] != '{') return 0;
  size_t end = at + 1;
  while (end < word.size() && IsOfName(word[end])) ++end;
  if (end >= word.size() || word[end] != '}' || end == at + 1) return 0;
  const bool doubled = at > 0 && word[at - 1] == '{' && end + 1 < word.size() && word[end + 1] == '}';
  return doubled ? 0 : end + 1 - at;
}

// Replaces each placeholder by what `value` returns for its name.
std::string Replaced(std::string_view word, const std::function<std::string(const std::string& name)>& value) {
  std::string text;
  for (size_t at = 0; at < word.size();) {
    const size_t length = PlaceholderAt(word, at);
    if (length == 0) {
      text += word[at++];
      continue;
    }
    text += value(std::string(word.substr(at + 1, length - 2)));
    at += length;
  }
  return text;
}

std::vector<std::string> NamesIn(const std::vector<std::string>& argv) {
  std::vector<std::string> names;
  for (const std::string& word : argv)
    Replaced(word, [&names](const std::string& name) { return names.emplace_back(name); });
  return names;
}

std::string Braced(const std::string& name) { return absl::StrCat("{", name, "}"); }

std::string AcceptedPlaceholders(CommandPart part) {
  return absl::StrJoin(PlaceholdersOf(part), ", ",
                       [](std::string* out, const std::string& name) { absl::StrAppend(out, Braced(name)); });
}

}  // namespace

std::string_view Name(CommandPart part) {
  switch (part) {
    case CommandPart::kAcquire:
      return "acquire";
    case CommandPart::kStart:
      return "start";
    case CommandPart::kState:
      return "state";
    case CommandPart::kRelease:
      break;
  }
  return "release";
}

const CommandTemplate& CommandSetting::Of(CommandPart part) const {
  switch (part) {
    case CommandPart::kAcquire:
      return acquire;
    case CommandPart::kStart:
      return start;
    case CommandPart::kState:
      return state;
    case CommandPart::kRelease:
      break;
  }
  return release;
}

CommandTemplate& CommandSetting::Of(CommandPart part) {
  return const_cast<CommandTemplate&>(static_cast<const CommandSetting*>(this)->Of(part));
}

absl::Duration UsualTimeLimit(CommandPart part) {
  switch (part) {
    case CommandPart::kAcquire:
      return absl::Minutes(10);
    case CommandPart::kStart:
      return absl::Minutes(2);
    case CommandPart::kState:
      return absl::Seconds(10);
    case CommandPart::kRelease:
      break;
  }
  return absl::Minutes(1);
}

std::vector<std::string> PlaceholdersOf(CommandPart part) {
  std::vector<std::string> names = {"experiment", "project"};
  const auto add = [&names](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (part == CommandPart::kAcquire) add({"hosts", "cpus", "mem_bytes", "gpus"});
  if (part != CommandPart::kAcquire) add({"job"});
  if (part == CommandPart::kStart || part == CommandPart::kState) add({"host", "address", "id"});
  if (part == CommandPart::kStart) add({kAgentWords, kAgentLine});
  return names;
}

absl::Status CheckCommandWords(CommandPart part, const std::vector<std::string>& argv) {
  if (argv.empty() || argv.front().empty())
    return absl::InvalidArgumentError("has no program; accepted: a list of words, the first is the program");
  for (const std::string& word : argv)
    if (word.find('\0') != std::string::npos)
      return absl::InvalidArgumentError(absl::StrCat("'", OneLine(word), "' has a zero byte; accepted: text"));
  const std::vector<std::string> known = PlaceholdersOf(part);
  const std::vector<std::string> used = NamesIn(argv);
  for (const std::string& name : used)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return absl::InvalidArgumentError(absl::StrCat("has the placeholder ", Braced(name), ", which there isn't",
                                                     NearestHint(name, known),
                                                     "; accepted: ", AcceptedPlaceholders(part)));
  if (part != CommandPart::kStart) return absl::OkStatus();
  for (const std::string& word : argv)
    if (word != Braced(kAgentWords) && UsesPlaceholder({word}, kAgentWords))
      return absl::InvalidArgumentError(absl::StrCat("has {agent} as a part of '", OneLine(word),
                                                     "'; accepted: as a word of its own, which becomes several, or ",
                                                     "{agent_line}, which is one text for a shell"));
  if (std::find(used.begin(), used.end(), kAgentWords) == used.end() &&
      std::find(used.begin(), used.end(), kAgentLine) == used.end())
    return absl::InvalidArgumentError(
        "starts nothing; accepted: words with {agent}, for a program that runs the words behind it on the host, or "
        "{agent_line}, for one that gives a text to a shell there, as ssh does");
  return absl::OkStatus();
}

bool UsesPlaceholder(const std::vector<std::string>& argv, const std::string& name) {
  const std::vector<std::string> used = NamesIn(argv);
  return std::find(used.begin(), used.end(), name) != used.end();
}

std::vector<std::string> ExpandCommand(const std::vector<std::string>& argv, const CommandValues& values,
                                       const std::vector<std::string>& agent) {
  std::vector<std::string> words;
  for (const std::string& word : argv) {
    if (word == Braced(kAgentWords)) {
      words.insert(words.end(), agent.begin(), agent.end());
      continue;
    }
    words.push_back(Replaced(word, [&values](const std::string& name) {
      const auto value = values.find(name);
      return value == values.end() ? std::string() : value->second;
    }));
  }
  return words;
}

std::string TypedCommand(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ",
                       [](std::string* out, const std::string& word) { absl::StrAppend(out, ShellWord(word)); });
}

}  // namespace muster
