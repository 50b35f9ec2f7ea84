// A worker's client of the store: does the same operation on every ps at once, retried under the same sequence number
// until it is answered or the patience runs out. Messages and steps: docs/store/steps.md.
//
// Lives on the transport's EventLoop and is used by the thread that drives it (TrafficStats: by any). Each operation
// waits in EventLoop::RunUntil, which gives the caller's time to the network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/calls/ps_calls.h"
#include "muster/store/calls/store_client_options.h"
#include "muster/store/calls/worker_progress.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/client/push_memory.h"
#include "muster/store/client/work_reports.h"
#include "muster/store/messages/messages.h"
#include "muster/store/messages/store_push.h"
#include "muster/store/model/model_binding.h"
#include "muster/transport/transport.h"

namespace muster {

class DirectUpdates;

// Errors of all operations, which name the ps and its address:
//   Unavailable         a ps can't be reached, or doesn't answer, for longer than the patience allows
//   Aborted             a ps was restarted and has lost the model, or other values were loaded: Join, AwaitReady and
//                       Pull again
//   Cancelled           training has ended, was shut down, or stop_requested said so. (Join then asks all ps once more,
//                       for a second each, so that Done reaches every ps that may know of this process.) IsInterrupted:
//                       and a ps is gone
//   PermissionDenied    the ps serves another job
//   FailedPrecondition  another version; another model than the chief's; not the chief (any more); replaced by a newer
//   process
class StoreClient {
 public:
  // `transport` must outlive the client.
  StoreClient(Transport& transport, std::vector<std::string> ps_addresses, StoreClientOptions options);
  ~StoreClient();
  // Makes this process known to every ps; if `chief`, also asks each of them for its chief's lease.
  [[nodiscard]] absl::Status Join(bool chief);
  // According to the ps at Join: one chief, at one time, has initialised the model everywhere; training has ended.
  bool ready() const;
  bool ended() const;
  uint64_t chief_epoch(int ps = 0) const { return ps_calls_.joined(ps).chief_epoch; }
  void Bind(ModelBinding binding);
  const ModelBinding& binding() const { return binding_; }
  StoreModel ModelOf(int ps) const;  // the model as that ps has it
  int num_ps() const { return ps_calls_.num_ps(); }

  // For operations in other files: requests to the ps, and numbers for them.
  PsCalls& ps_calls() { return ps_calls_; }
  const PsCalls& ps_calls() const { return ps_calls_; }
  // `sequence` 0: of a heartbeat, or another request without a number of its own.
  Stamp MakeStamp(int ps, uint64_t sequence) const { return ps_calls_.MakeStamp(ps, sequence); }
  StoreNumbers NextNumbers() { return {++sequence_, generation_, global_step_}; }

  // For the chief: gives every ps its slices, ps 0 last, whatever they held before. `parts` (one per ps) come from a
  // checkpoint; without them the bound memory gives the initial values.
  [[nodiscard]] absl::Status Initialize(int64_t global_step, int64_t minibatches,
                                        const std::vector<RestoredPart>* parts);

  // Blocks until the chief has initialised every ps; compares models; sets up direct apply. Returns the global step.
  absl::StatusOr<int64_t> AwaitReady(absl::Time deadline);

  using PushPullOptions = StorePushOptions;
  using StepResult = StorePushResult;
  // Makes one round trip to every ps: gradients there (`gradient(i)` of variable i; empty: none), values back into the
  // bound memory. With several ps, ps 0 then counts the update (a single ps does so in the same round trip).
  absl::StatusOr<StepResult> PushPull(absl::FunctionRef<ByteSpan(size_t)> gradient, const PushPullOptions& options);

  // From ps 0's last answer: the global step, the next local_step. From all ps: how far our clock is.
  int64_t global_step() const { return global_step_; }
  uint64_t round() const { return round_; }
  uint64_t clock() const { return clock_; }
  uint64_t generation() const { return generation_; }  // of the values; changes when others are loaded
  // Waits at ps 0 until `parties` different workers have called it with this name; elastic: or all present ones.
  // Unavailable: not within gate_patience. InvalidArgument: there can never be that many.
  [[nodiscard]] absl::Status Barrier(const std::string& name, uint32_t parties, bool elastic = false);
  // In an ordered model, after a Pull: waits for this worker's turn at every ps. Its next push is clock() + 1, or to
  // round(). `leaves`: there is none; waits until all workers have said so. Unavailable: not within gate_patience.
  [[nodiscard]] absl::Status AwaitTurn(bool leaves = false);
  // Direct apply: returns where a trainable variable lies in the arena, if it may be trained there. Private after Done.
  InPlaceMemory InPlace(size_t variable) const;
  [[nodiscard]] absl::Status Pull(PullWhat what);  // values of all ps into the bound memory
  absl::StatusOr<int64_t> ReadGlobalStep();        // ps 0's counter, without a pull
  [[nodiscard]] absl::Status Done();
  [[nodiscard]] absl::Status Shutdown(const std::string& reason);

  // Takes the checkpoint that ps 0 wants the chief to load; empty: none. The caller must report the result.
  std::string TakeLoadRequest() { return std::exchange(load_request_, {}); }
  [[nodiscard]] absl::Status ReportLoad(const absl::StatusOr<int64_t>& global_step);
  const std::vector<std::string>& addresses() const { return ps_calls_.addresses(); }
  Track* track() const { return options_.track; }
  bool applies_own_updates() const;
  // What pushes report of shared work.
  WorkReports& work() { return work_; }
  // How this worker gets on, for its heartbeats.
  WorkerProgress& progress() { return progress_; }

 private:
  friend class DirectUpdates;
  friend class OverlappedPush;
  friend class RowClient;
  friend struct ValueSet;
  // What is bound on one ps.
  struct Bound {
    std::vector<SlicePiece> slices;
    uint64_t pulled_version = 0;
  };

  [[nodiscard]] absl::Status AwaitAllServers();
  absl::Duration JoinPatience() const;
  [[nodiscard]] absl::Status JoinOne(int ps, bool chief, bool last);
  [[nodiscard]] absl::Status InitializeOne(int ps, int64_t global_step, int64_t minibatches, const RestoredPart* part);
  absl::StatusOr<StepResult> PushPullAll(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                         const std::vector<double>& scales, const PushPullOptions& options);
  void MakePushPull(StoreCall& call, absl::FunctionRef<ByteSpan(size_t)> gradient, const std::vector<double>& scales,
                    const PushPullOptions& options, uint64_t sequence);
  bool CountsInTurn(const PushPullOptions& options) const;
  [[nodiscard]] absl::Status AbsorbPushPull(StoreCall& call, StepResult& result);
  uint64_t NewestGeneration() const;  // of all ps at Join
  void AddPullTargets(StoreCall& call, PullWhat what);

  const StoreClientOptions options_;
  PsCalls ps_calls_;
  WorkReports work_;
  WorkerProgress progress_;
  std::vector<Bound> bound_;  // one per ps
  ModelBinding binding_;
  PushMemory push_;
  uint64_t sequence_ = 0;
  uint64_t round_ = 0;
  uint64_t clock_ = 0;
  bool was_joined_ = false;
  uint64_t generation_ = 0;  // of the pulled values
  int64_t global_step_ = 0;  // from ps 0's last answer
  std::string load_request_;
  const std::unique_ptr<DirectUpdates> direct_;
};

}  // namespace muster
