// The flags with which programs under test train by a way of store/testing/update_way.h.
#pragma once

#include <string>
#include <vector>

#include "muster/store/testing/update_way.h"

namespace muster {

// Flags of any program; only toy_worker sends updates in parts or pipelined.
inline std::vector<std::string> WholeFlagsOf(const UpdateWay& way) {
  return {way.direct() ? "--apply=direct" : "--apply=server",
          way.transport == TransportChoice::kTcp ? "--transport=tcp" : "--transport=auto"};
}

// Flags of toy_worker.
inline std::vector<std::string> FlagsOf(const UpdateWay& way) {
  std::vector<std::string> flags = WholeFlagsOf(way);
  flags.push_back("--part_bytes=" + std::to_string(way.part_bytes()));
  if (way.pipelined()) flags.emplace_back("--pipelined");
  return flags;
}

}  // namespace muster
