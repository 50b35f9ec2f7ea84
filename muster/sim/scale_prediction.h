// Predicts how fast a cluster that doesn't exist would train: runs the real store, clients and algorithm in a simulated
// world in which computing, sending and applying take the times measured on a small cluster (`bench scale` measures
// them and compares). It predicts where workers begin to wait for the ps. It ignores cores and memory that processes of
// one host share, and the bandwidth of links (include it in ps_model if it is the limit).
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// For asynchronous training with one push_pull per step to every ps, each holding an equal share of the model.
struct StepCosts {
  absl::Duration compute;     // time of a minibatch
  absl::Duration client;      // what else a worker spends on a step, with one ps
  absl::Duration client_ps;   // and for each further ps
  absl::Duration ps_request;  // for one request at a ps, whatever its size
  absl::Duration ps_model;    // for receiving, applying and answering the whole model; proportional for a share of it
  absl::Duration one_way;     // for a message, including the wake-up of its receiver
};

// Returns the steps per second of all workers together, measured over `simulated` after one second of warming up.
// Errors: those of StoreClient; ResourceExhausted: the simulation needs too many events.
absl::StatusOr<double> PredictStepsPerSecond(int workers, int num_ps, const StepCosts& costs,
                                             absl::Duration simulated = absl::Seconds(4));

}  // namespace muster
