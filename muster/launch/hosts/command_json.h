// Settings of the engine `command` as JSON, for the files of muster. Pure, thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "muster/launch/hosts/command_setting.h"

namespace muster {

nlohmann::json JsonOfCommands(const CommandSetting& setting);
// Throws as nlohmann::json does.
CommandSetting CommandsOfJson(const nlohmann::json& object);

}  // namespace muster
