#include "muster/launch/spec/commands_reader.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/spec/key_check.h"

namespace muster {
namespace {

constexpr char kWordsAccepted[] = "a list of words, the program first: [./get_hosts, --n, \"{hosts}\"]";

std::vector<std::string> KeysOfCommand(CommandPart part) {
  std::vector<std::string> keys = {"argv", "timeout"};
  if (part == CommandPart::kAcquire) keys.insert(keys.end(), {"retry_exit", "refused_exit"});
  if (part == CommandPart::kState || part == CommandPart::kRelease) keys.emplace_back("gone_exit");
  return keys;
}

void ReadWords(const YamlNode& node, CommandPart part, const std::string& key, CommandTemplate& command,
               FileMistakes& mistakes) {
  if (node.kind != YamlKind::kList)
    return mistakes.Add(node.line, key,
                        node.kind == YamlKind::kScalar ? "is one text, which no shell reads" : "is no list",
                        kWordsAccepted);
  command.argv.clear();
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlKind::kScalar)
      return mistakes.Add(item.line, key, "has a word that is no text", kWordsAccepted);
    command.argv.push_back(item.text);
  }
  if (const absl::Status fine = CheckCommandWords(part, command.argv); !fine.ok()) mistakes.Add(node.line, key, fine);
}

std::vector<int> ReadCodes(const YamlNode& node, const std::string& key, FileMistakes& mistakes) {
  std::vector<int> codes;
  const std::vector<YamlNode> items = node.kind == YamlKind::kList ? node.items : std::vector<YamlNode>{node};
  for (const YamlNode& item : items) {
    const std::optional<int64_t> code = WholeOf(item);
    if (!code.has_value() || *code < 1 || *code > 255) {
      mistakes.Add(item.line, key, "has what is no exit code", "a list of whole numbers from 1 to 255");
      return {};
    }
    codes.push_back(static_cast<int>(*code));
  }
  return codes;
}

void ReadTimeLimit(const YamlNode& node, const std::string& key, CommandTemplate& command, FileMistakes& mistakes) {
  const std::optional<absl::Duration> limit = DurationOf(node);
  if (limit.has_value() && *limit > absl::ZeroDuration())
    command.time_limit = *limit;
  else
    mistakes.Add(node.line, key, "is no time limit", "a duration up to 24h: 30s, 10m, 2h");
}

CommandTemplate ReadCommand(const YamlNode& node, CommandPart part, const std::string& path, FileMistakes& mistakes) {
  CommandTemplate command{.argv = {}, .time_limit = UsualTimeLimit(part)};
  if (node.kind != YamlKind::kMap) {
    // CheckKeys has reported it in an experiment file.
    if (path.find('.') == std::string::npos)
      mistakes.Add(node.line, path, "is no map", "{argv: [PROGRAM, WORDS], timeout: TIME}");
    return command;
  }
  const std::vector<std::string> known = KeysOfCommand(part);
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& name = node.keys[i];
    const YamlNode& item = node.items[i];
    const std::string key = absl::StrCat(path, ".", OneLine(name));
    if (std::find(known.begin(), known.end(), name) == known.end())
      mistakes.Add(item.line, key, absl::StrCat("there is no such key", NearestHint(name, known)),
                   absl::StrJoin(known, ", "));
    else if (name == "argv")
      ReadWords(item, part, key, command, mistakes);
    else if (name == "timeout")
      ReadTimeLimit(item, key, command, mistakes);
    else
      (name == "retry_exit"     ? command.retry_exit
       : name == "refused_exit" ? command.refused_exit
                                : command.gone_exit) = ReadCodes(item, key, mistakes);
  }
  if (node.Find("argv") == nullptr) mistakes.Add(node.line, path, "has no argv", kWordsAccepted);
  return command;
}

}  // namespace

CommandSetting ReadCommands(const YamlNode& node, const std::string& before, FileMistakes& mistakes) {
  CommandSetting setting;
  std::vector<std::string> known;
  for (const CommandPart part : kCommandParts) {
    const std::string name(Name(part));
    known.push_back(name);
    if (const YamlNode* command = node.Find(name); command != nullptr) {
      setting.Of(part) = ReadCommand(*command, part, before + name, mistakes);
    } else if (part == CommandPart::kAcquire || part == CommandPart::kStart) {
      mistakes.Add(node.line, before + name, "is missing", "{argv: [PROGRAM, WORDS], timeout: TIME}");
    }
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& name = node.keys[i];
    if (std::find(known.begin(), known.end(), name) == known.end())
      mistakes.Add(node.items[i].line, before + OneLine(name),
                   absl::StrCat("there is no such command", NearestHint(name, known)), absl::StrJoin(known, ", "));
    else if (!seen.insert(name).second && before.empty())  // likewise
      mistakes.Add(node.items[i].line, before + name, "is there twice", "each command once");
  }
  return setting;
}

absl::StatusOr<CommandSetting> ReadCommandsFile(const std::string& path) {
  const absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(path);
  if (absl::IsNotFound(text.status()))
    return absl::NotFoundError(absl::StrCat("the file of commands '", path,
                                            "' isn't there; accepted: one with acquire, start, state, release"));
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(const YamlNode tree, ParseYaml(*text, path));
  if (tree.kind != YamlKind::kMap)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no commands; accepted: acquire, start, state, release"));
  FileMistakes mistakes(path);
  CommandSetting setting = ReadCommands(tree, "", mistakes);
  RETURN_IF_ERROR(mistakes.status());
  setting.folder = std::filesystem::absolute(path).lexically_normal().parent_path().string();
  return setting;
}

}  // namespace muster
