// Chooses which process applies a worker's updates: the ps, or, on the ps's own host, the worker itself in the ps's
// arena.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

enum class ApplyChoice : uint8_t {
  // The ps. The only choice across hosts, with a staleness bound, and where nobody may touch the ps's memory.
  kServer,
  // The worker, for every ps (with a synchronous gate, the workers together, each a share); an error if a ps is on
  // another host. The model trains on the arena's own memory: reads are as in Hogwild (others' updates arrive while a
  // minibatch is computed), writes are locked.
  kDirect,
  // The worker if all ps are on its host and the training mode allows it, else the ps. The model trains on a copy made
  // after each update, as by a pull, unless there is no other worker or nobody updates without this one.
  kAuto,
};

// "server", "direct", "auto"; nullopt for anything else.
inline std::optional<ApplyChoice> ParseApplyChoice(std::string_view name) {
  if (name == "server") return ApplyChoice::kServer;
  if (name == "direct") return ApplyChoice::kDirect;
  if (name == "auto") return ApplyChoice::kAuto;
  return std::nullopt;
}

}  // namespace muster
