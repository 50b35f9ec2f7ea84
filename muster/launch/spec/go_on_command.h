// The command that starts another attempt of an experiment, for messages. Pure; thread-safe.
#pragma once

#include <string>

namespace muster {

// Returns "muster train --experiment 4", with -f where the experiment's file isn't the one that is taken without it.
// `id` is the experiment's as its reader knows it; `file_name` is its file's name in its folder.
std::string GoOnCommand(const std::string& id, const std::string& file_name);

// Returns "; muster train --experiment 4 goes on with it, from its last checkpoint".
std::string GoesOnBy(const std::string& id, const std::string& file_name);

}  // namespace muster
