// What torchrun's variables say: which of how many processes this one is. They name only the host of rank 0, so
// processes find each other by them on one host alone. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// As the environment has them.
struct TorchrunVariables {
  std::optional<std::string> rank;              // RANK
  std::optional<std::string> world_size;        // WORLD_SIZE
  std::optional<std::string> local_rank;        // LOCAL_RANK
  std::optional<std::string> local_world_size;  // LOCAL_WORLD_SIZE
  std::optional<std::string> master_port;       // MASTER_PORT
};

struct TorchrunWorld {
  int rank = 0;
  int size = 1;
  int master_port = 0;
};

// Both members are empty without torchrun. Scripts set some of these variables for purposes of their own: without all
// of RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE it isn't torchrun.
struct TorchrunAnswer {
  std::optional<TorchrunWorld> world;
  std::string alone;  // torchrun's only process: why it is alone
};

// With `demanded` (MUSTER_RESOLVE=torchrun) a missing variable is an error. InvalidArgument names the variable: no
// number, a contradiction, or processes on several hosts.
absl::StatusOr<TorchrunAnswer> ReadTorchrun(const TorchrunVariables& variables, bool demanded);

}  // namespace muster
