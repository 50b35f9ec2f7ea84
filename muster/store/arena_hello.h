// What a direct worker says first on the unix socket of a ps (arena_port.h). One message there, one back: a byte, with
// the descriptor of the arena's memory beside it. docs/store/direct_apply.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

constexpr size_t kTicketBytes = 32;

struct ArenaHello {
  char magic[8] = {'m', 'u', 's', 't', 'e', 'r', 'd', '1'};
  char ticket[kTicketBytes] = {};  // what ps and worker have agreed on over their channel, where the job token counts
  uint64_t pid_namespace = 0;      // of the worker: robust locks know their owner by a number that has to mean the same
};

}  // namespace muster
