// One way to train, as `bench steps` and `bench algorithms` measure it: everything that its processes are told. Plain
// data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "muster/algo/algorithms/all_reduce.h"
#include "muster/store/client/store_client.h"

namespace muster::bench {

// The modes of a way that aren't the façade's (async, pipelined, sync).
inline constexpr char kLocal[] = "local";  // as many processes as `workers`, without muster, independent
inline constexpr char kAlone[] = "alone";  // one process that is its own cluster
inline constexpr char kAllReduce[] = "all_reduce";

struct StepsWay {
  std::string model = "mlp100";  // or mlp2048 (mlp.h)
  std::string rule = "sgd";      // or adam
  std::string mode = kLocal;
  int workers = 1;
  std::string apply = "-";      // what applies updates: server, auto, direct (ApplyChoice)
  std::string transport = "-";  // tcp, shm; for all-reduce ring, shm; "-": nothing is sent
  std::string wire = "fp32";    // precision in which gradients and parameters are sent
  std::string reduce = "-";     // when all-reduce averages: auto, after, within, beside (ReduceWhen)
  bool undo = true;             // with what makes a worker's death harmless, if workers apply
  bool traced = false;          // --trace in all tasks
  bool amd = true;              // the processor switch of torch_bridge/mkl_amd, in the processes that train
  bool by_name = false;         // the mode is one of `muster algorithms`, with its default parameters
  bool together = false;        // by name: no worker can take a step without the others

  bool operator==(const StepsWay&) const = default;
  // Returns whether no worker can take a step without the others.
  bool in_step() const { return together || mode == "sync" || mode == kAllReduce; }
  // Returns whether its processes are tasks that find each other.
  bool is_cluster() const { return mode != kLocal && mode != kAlone; }
  bool has_ps() const { return is_cluster() && mode != kAllReduce; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepsWay, model, rule, mode, workers, apply, transport, wire, reduce, undo, traced,
                                   amd, by_name, together)

// Settings that are the same for all ways of a run.
struct StepsSettings {
  double seconds = 1;  // of one measurement
  size_t part_bytes = StoreClientOptions().part_bytes;
  size_t bucket_bytes = AllReduceOptions().bucket_bytes;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepsSettings, seconds, part_bytes, bucket_bytes)

// Returns "async server tcp", "pipelined server tcp bf16", "local, switch off": without model, rule and workers.
std::string NameOf(const StepsWay& way);

}  // namespace muster::bench
