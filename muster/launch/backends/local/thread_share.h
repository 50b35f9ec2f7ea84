// How many threads each of several processes of one program gets that share a host's processors and know nothing of
// each other: a program that asks for none computes with a thread for each processor. Pure; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "muster/base/os/processors.h"

namespace muster {

struct ThreadShare {
  int threads = 1;
  std::string line;  // for the user: how many, and why
};

// Returns what a process with these variables gets: its part of the processors, at least one thread. nullopt: nobody
// asks for a share (kSharersVariable), or the user has chosen a number (kThreadsVariable). `processors` returns what
// the job may use here; its argument is the user's own limit (kProcessorsVariable).
std::optional<ThreadShare> ThreadShareOf(const std::map<std::string, std::string>& variables,
                                         absl::FunctionRef<Processors(std::optional<int> limit)> processors);

}  // namespace muster
