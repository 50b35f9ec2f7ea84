#include "muster/launch/hosts/command_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster {

nlohmann::json JsonOfCommands(const CommandSetting& setting) {
  nlohmann::json object = {{"hosts", setting.hosts}, {"folder", setting.folder}};
  for (const CommandPart part : kCommandParts) {
    const CommandTemplate& command = setting.Of(part);
    if (command.argv.empty()) continue;
    object[std::string(Name(part))] = {{"argv", command.argv},
                                       {"seconds", absl::ToDoubleSeconds(command.time_limit)},
                                       {"retry_exit", command.retry_exit},
                                       {"refused_exit", command.refused_exit},
                                       {"gone_exit", command.gone_exit}};
  }
  return object;
}

CommandSetting CommandsOfJson(const nlohmann::json& object) {
  CommandSetting setting;
  setting.hosts = object.at("hosts").get<int>();
  setting.folder = object.at("folder").get<std::string>();
  for (const CommandPart part : kCommandParts) {
    const std::string name(Name(part));
    if (!object.contains(name)) continue;
    const nlohmann::json& command = object.at(name);
    setting.Of(part) = {.argv = command.at("argv").get<std::vector<std::string>>(),
                        .time_limit = absl::Seconds(command.at("seconds").get<double>()),
                        .retry_exit = command.at("retry_exit").get<std::vector<int>>(),
                        .refused_exit = command.at("refused_exit").get<std::vector<int>>(),
                        .gone_exit = command.at("gone_exit").get<std::vector<int>>()};
  }
  return setting;
}

}  // namespace muster
