// Reads the commands of the engine `command`: `hosts_by` of an experiment file, or a file of their own. Pure but for
// ReadCommandsFile, which blocks while it reads; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/file_mistakes.h"
#include "muster/launch/hosts/command_setting.h"
#include "muster/launch/spec/yaml_tree.h"

namespace muster {

// Reads {acquire, start, state, release}. `before`: what the names of keys begin with in messages: "hosts_by.".
CommandSetting ReadCommands(const YamlNode& node, const std::string& before, FileMistakes& mistakes);

// Reads a file with these keys; the commands run in its folder. NotFound: it isn't there. InvalidArgument lists all
// mistakes, as FILE:LINE.
absl::StatusOr<CommandSetting> ReadCommandsFile(const std::string& path);

}  // namespace muster
