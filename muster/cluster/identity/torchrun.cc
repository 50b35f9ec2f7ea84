#include "muster/cluster/identity/torchrun.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/cluster/task_id.h"

namespace muster {
namespace {

constexpr char kTorchrunWayOut[] = "; MUSTER_RESOLVE=none trains alone";
constexpr int kMostTorchrunProcesses = 4096;

absl::Status NotTorchruns(const std::string& name, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", why, kTorchrunWayOut));
}

absl::StatusOr<int> TorchrunNumber(const std::string& name, const std::optional<std::string>& value, int least,
                                   int most) {
  const auto number = ParseTaskIndex(value.value_or(""));
  if (number.ok() && *number >= least && *number <= most) return *number;
  return NotTorchruns(name,
                      absl::StrCat(Quoted(value.value_or("")), " is not torchrun's; accepted: ", least, " to ", most));
}

}  // namespace

absl::StatusOr<TorchrunAnswer> ReadTorchrun(const TorchrunVariables& variables, bool demanded) {
  TorchrunAnswer answer;
  for (const auto& [name, value] :
       {std::pair{"RANK", &variables.rank}, std::pair{"WORLD_SIZE", &variables.world_size},
        std::pair{"LOCAL_RANK", &variables.local_rank}, std::pair{"LOCAL_WORLD_SIZE", &variables.local_world_size}}) {
    if (!value->value_or("").empty()) continue;
    if (!demanded) return answer;
    return absl::InvalidArgumentError(absl::StrCat("MUSTER_RESOLVE=torchrun, but ", name,
                                                   " isn't set: torchrun sets RANK, WORLD_SIZE, LOCAL_RANK and "
                                                   "LOCAL_WORLD_SIZE"));
  }
  TorchrunWorld world;
  ASSIGN_OR_RETURN(world.size, TorchrunNumber("WORLD_SIZE", variables.world_size, 1, kMaxTaskIndex));
  ASSIGN_OR_RETURN(world.rank, TorchrunNumber("RANK", variables.rank, 0, world.size - 1));
  ASSIGN_OR_RETURN(const int local_size, TorchrunNumber("LOCAL_WORLD_SIZE", variables.local_world_size, 1, world.size));
  ASSIGN_OR_RETURN(const int local_rank, TorchrunNumber("LOCAL_RANK", variables.local_rank, 0, local_size - 1));
  if (local_size < world.size)
    return NotTorchruns(
        "WORLD_SIZE",
        absl::StrCat(world.size, " processes, ", local_size,
                     " of them on this host: torchrun tells where rank 0 is (MASTER_ADDR) and no other; over "
                     "several hosts use muster run --hosts, srun without torchrun, TF_CONFIG or flags"));
  if (local_rank != world.rank)
    return NotTorchruns("LOCAL_RANK", absl::StrCat(local_rank, " on the only host, where RANK is ", world.rank));
  if (world.size == 1) {
    answer.alone = "torchrun has one process (WORLD_SIZE=1)";
    return answer;
  }
  if (world.size > kMostTorchrunProcesses)
    return NotTorchruns("WORLD_SIZE",
                        absl::StrCat(world.size, " on one host; accepted: at most ", kMostTorchrunProcesses));
  ASSIGN_OR_RETURN(world.master_port, TorchrunNumber("MASTER_PORT", variables.master_port, 1, 65535));
  answer.world = world;
  return answer;
}

}  // namespace muster
