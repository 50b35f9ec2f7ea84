// The first message of a direct worker on a ps's unix socket (arena_listener.h). The answer is one byte, with the
// descriptor of the arena's memory. docs/store/direct_apply.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

constexpr size_t kTicketBytes = 32;

struct AttachMessage {
  char magic[8] = {'m', 'u', 's', 't', 'e', 'r', 'd', '1'};
  char ticket[kTicketBytes] = {};  // agreed on by ps and worker over their channel, which checks the job token
  // The worker's: robust locks know their owner by a number that must mean the same to both.
  uint64_t pid_namespace = 0;
};

}  // namespace muster
