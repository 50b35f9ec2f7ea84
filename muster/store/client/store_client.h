// A worker's client of the store: does the same operation on every ps at once, retried under the same sequence number
// until it is answered or the patience runs out. Messages and steps: docs/store/steps.md.
//
// Lives on the transport's EventLoop and is used by the thread that drives it (TrafficStats: by any). Each operation
// waits in EventLoop::RunUntil, which gives the caller's time to the network.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/cluster/placement/placement.h"
#include "muster/observe/track.h"
#include "muster/store/arena/arena_probe.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/client/push_memory.h"
#include "muster/store/client/store_call.h"
#include "muster/store/messages/messages.h"
#include "muster/store/messages/store_push.h"
#include "muster/store/model/apply_choice.h"
#include "muster/store/model/model_binding.h"
#include "muster/transport/transport.h"

namespace muster {

struct StoreClientOptions {
  std::string task;   // "worker:1"
  std::string where;  // "host, pid 12"
  uint64_t incarnation = 1;
  // How long a ps may be unreachable, or silent about one request, before the operation fails with Unavailable.
  absl::Duration patience = absl::Seconds(60);
  // How long it may be silent about requests that move or write the whole model: initialisation, parts of checkpoints,
  // their commit. For being unreachable, `patience` holds even then.
  absl::Duration transfer_patience = absl::Minutes(30);
  // How long a gate or a barrier may hold an answer back while the ps can be reached.
  absl::Duration gate_patience = absl::Minutes(30);
  // How long this process sleeps in a round of direct apply before it checks whether it must still wait; ten times as
  // long in a long wait. 0 in a simulated world, where others run in this very thread.
  absl::Duration round_sleep = kRoundSleep;
  static constexpr absl::Duration kRoundSleep = absl::Milliseconds(5);
  // How long Join waits for the lease of an earlier life of this task.
  absl::Duration join_patience = absl::Seconds(12);
  // Checked while Join, AwaitReady, gates and barriers wait: true ends them with Cancelled. (Work under way is finished
  // unless a ps is gone: last_wait.h.)
  std::function<bool()> stop_requested = [] { return false; };
  absl::Duration stop_patience = absl::Seconds(5);  // how long a ps may be silent after a stop
  ApplyChoice apply = ApplyChoice::kServer;         // which process applies updates, from AwaitReady on
  bool tcp_asked_for = false;  // warn that --transport=tcp has no effect when this worker applies its own updates
  // What is sent when the ps apply; a worker that applies its own updates sends nothing and ignores this.
  WireOptions wire = {};
  ArenaProbe* probe = nullptr;  // for tests of direct apply
  Track* track = nullptr;       // borrowed: of the thread that uses the client; null: nothing is recorded
  // Updates that may be sent in parts (overlapped_push.h) go in parts of about this many bytes; 0: each as one message.
  size_t part_bytes = size_t{512} << 10;
};

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
  uint64_t chief_epoch(int ps = 0) const { return servers_[ps].joined.chief_epoch; }
  void Bind(ModelBinding binding);
  const ModelBinding& binding() const { return binding_; }
  StoreModel ModelOf(int ps) const;  // the model as that ps has it
  int num_ps() const { return static_cast<int>(servers_.size()); }

  // For operations in other files: sends requests at once and retries them until they are answered; numbers for them.
  // DataLoss: an answer's bulk hasn't the length of `into`.
  [[nodiscard]] absl::Status Ask(std::vector<StoreCall>& calls);
  StoreNumbers NextNumbers() { return {++sequence_, generation_, global_step_}; }
  Stamp MakeStamp(int ps, uint64_t sequence) const;

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
  absl::StatusOr<std::string> PsStatus(int ps);  // its status page, JSON

  // Checkpoints; see train/saver.h, which leads them. `hold`: the cut that the part is of (cut_leader.h).
  absl::StatusOr<SavePartReply> SavePart(int ps, const std::string& directory, const std::string& save_id,
                                         const std::string& file, uint64_t hold);
  absl::StatusOr<PartSnapshot> ExportPart(int ps, uint64_t hold);
  [[nodiscard]] absl::Status CommitCheckpoint(const std::string& directory, const std::string& manifest, int keep = 0,
                                              double preserve_every_hours = 0);

  // Takes the checkpoint that ps 0 wants the chief to load; empty: none. The caller must report the result.
  std::string TakeLoadRequest() { return std::exchange(load_request_, {}); }
  [[nodiscard]] absl::Status ReportLoad(const absl::StatusOr<int64_t>& global_step);
  Stamp HeartbeatStamp(int ps) const;  // of the next heartbeat to `ps`; heartbeats have no number of their own
  const std::vector<std::string>& addresses() const { return addresses_; }
  Channel::Stats TrafficStats(int ps) const { return servers_[ps].channel->stats(); }
  Track* track() const { return options_.track; }
  bool applies_own_updates() const { return direct_ != nullptr; }
  class Direct;  // store_client_direct.h
  class Work;    // store_client_work.h
 private:
  friend class LastWait;
  friend class OverlappedPush;
  friend struct ValueSet;
  struct Server {
    std::unique_ptr<Channel> channel;
    JoinReply joined;
    std::vector<SlicePiece> slices;
    uint64_t pulled_version = 0;
  };

  std::string Name(int ps) const;
  std::string Named(int ps, absl::string_view message) const;  // `message`, with the ps's name
  absl::Status Annotate(int ps, const absl::Status& status) const;
  void Send(StoreCall& call, absl::Time deadline, int& unanswered);
  [[nodiscard]] absl::Status Exchange(std::vector<StoreCall>& calls, absl::Time deadline, bool stoppable = false);
  // For requests that a gate may hold back: waits for gate_patience, but for an unreachable ps only for `patience`.
  [[nodiscard]] absl::Status ExchangeHeldBack(std::vector<StoreCall>& calls);
  [[nodiscard]] absl::Status AskWhoIsSilent(const std::vector<StoreCall>& calls);
  void Abandon(std::vector<StoreCall>& calls, int& unanswered);
  [[nodiscard]] absl::Status ExchangeOne(StoreCall& call, absl::Duration patience, bool stoppable = false);
  [[nodiscard]] absl::Status Transfer(StoreCall& call);
  [[nodiscard]] absl::Status AwaitAllServers();
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

  EventLoop& loop_;
  const StoreClientOptions options_;
  const std::vector<std::string> addresses_;
  std::vector<Server> servers_;
  ModelBinding binding_;
  PushMemory push_;
  uint64_t sequence_ = 0;
  uint64_t round_ = 0;
  uint64_t clock_ = 0;
  uint64_t generation_ = 0;  // of the pulled values
  int64_t global_step_ = 0;  // from ps 0's last answer
  std::string load_request_;
  std::unique_ptr<Direct> direct_;  // null: the ps apply
};

}  // namespace muster
