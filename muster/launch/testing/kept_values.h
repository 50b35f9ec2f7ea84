// Keeps values as a Keeper does, in a map of the test. Test-only.
#pragma once

#include <map>
#include <string>

#include "muster/launch/agent_server/kept_journal.h"

namespace muster {

inline void KeepIn(std::map<std::string, KeptThing>& kept, const ValueChanges& changes) {
  for (const auto& [name, value] : changes) {
    if (value.has_value()) {
      kept[name] = {.value = *value, .descriptors = {}};
    } else {
      kept.erase(name);
    }
  }
}

}  // namespace muster
