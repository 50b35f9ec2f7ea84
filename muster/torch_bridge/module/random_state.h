// The state of torch's default random generator on the CPU, from which initial weights, dropout and torch::rand draw.
// It is set from a seed at the start, saved in checkpoints and restored from them. Thread-safe (torch's generator has a
// lock).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// The same `seed` makes the same initial weights in every process; `stream` (e.g. a task's global id) makes independent
// sequences from one seed, for what should differ between tasks, such as dropout.
void SeedTorch(uint64_t seed, uint64_t stream = 0);

// Opaque bytes, specific to a version of libtorch.
std::string TorchRandomState();

// InvalidArgument: not a state that this version of libtorch wrote; the generator then stays as it was.
absl::Status SetTorchRandomState(absl::string_view state);

}  // namespace muster
