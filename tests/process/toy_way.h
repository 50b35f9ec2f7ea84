// The flags with which toy_worker trains by a way of store/way.h.
#pragma once

#include <string>
#include <vector>

#include "muster/store/way.h"

namespace muster {

inline std::vector<std::string> FlagsOf(const Way& way) {
  std::vector<std::string> flags = {way.direct() ? "--apply=direct" : "--apply=server",
                                    way.transport == TransportChoice::kTcp ? "--transport=tcp" : "--transport=auto",
                                    "--part_bytes=" + std::to_string(way.part_bytes())};
  if (way.pipelined()) flags.emplace_back("--pipelined");
  return flags;
}

}  // namespace muster
