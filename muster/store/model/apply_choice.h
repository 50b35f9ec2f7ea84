// Who applies a worker's updates: the ps, or, on the ps's own host, the worker itself in the ps's arena.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

enum class ApplyChoice : uint8_t {
  // The ps. The only one across hosts, with a bound of staleness, and where nobody may touch the ps's memory.
  kServer,
  // The worker, for every ps (with a synchronous gate the workers together, each a share); it is an error if one of
  // them is on another host. The parameters that the model trains
  // with are the arena's own memory: reads are as in Hogwild (others' updates come in while a minibatch is computed),
  // writes are locked.
  kDirect,
  // The worker if all ps are on its host and the mode of training allows it, else the ps. What is trained with is a
  // copy made after each update, as of a pull, unless there is no other worker or nobody updates without this one.
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
