// The parameter server as a state machine: requests in, answers out (docs/store/ has every message and
// step). It has no thread, clock or wait of its own: it runs on the handlers of its EventLoop, so that a simulated
// world can run it as well as a listener. Only writing a part of a checkpoint takes long; `background` runs that.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "muster/base/files/file_system.h"
#include "muster/observe/track.h"
#include "muster/store/arena/arena.h"
#include "muster/store/checkpoints/checkpoint_hold.h"
#include "muster/store/checkpoints/part_saver.h"
#include "muster/store/direct/direct_door.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/gates.h"
#include "muster/store/messages/messages.h"
#include "muster/store/queues/queue_requests.h"
#include "muster/store/service/buffer_pool.h"
#include "muster/store/service/decoded_bulk.h"
#include "muster/store/service/row_requests.h"
#include "muster/store/service/work_requests.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

struct StoreOptions {
  std::string task = "ps:0";         // for messages and the status page
  bool lead = true;                  // ps 0: counts the global step and commits checkpoints
  std::vector<std::string> workers;  // the tasks that may join, including the chief: "chief:0", "worker:0", …
  LeaseOptions lease;
  uint64_t incarnation = 1;  // of this process
  // How long the store answers late requests after the end.
  absl::Duration linger = absl::Milliseconds(300);
  // How long a shutdown waits, before that, for the clients that train: they learn of it with their next push, and the
  // chief then saves its last checkpoint.
  absl::Duration shutdown_grace = absl::Seconds(20);
  FileSystem* files = nullptr;  // borrowed for the service's life
  PartSaver::Background background;
  // Where the model is kept. A process that keeps its descriptor can, after this service was killed, start another one
  // on it, which continues where this one stopped. Null: memory of its own, which ends with it.
  std::shared_ptr<ArenaMemory> memory;
  // All clients that train are threads of this process: their model ends with them, so no update need survive a death.
  bool one_process = false;
  ArenaPort* port = nullptr;    // borrowed: gives workers on this host the arena; null: none get it
  ArenaProbe* probe = nullptr;  // for tests
  Track* track = nullptr;       // borrowed: the loop's thread's; null: nothing is recorded
  uint64_t queue_bytes = FifoQueuesOptions().bytes;  // limit for all queues here when they are full
  std::shared_ptr<WorkQueue> work;  // of ps 0, shared with whatever takes from it without messages; or null
};

// Everything that the status page shows; see store_status.h.
struct StoreView {
  const StoreOptions* options = nullptr;
  absl::Time now;
  absl::Time started;
  Arena* arena = nullptr;  // null: the model isn't initialised
  const ClientTable* clients = nullptr;
  std::vector<WaitingFor> waiting;  // one per client: at a gate, or a queue
  std::vector<FifoQueues::View> queues;
  std::optional<WorkQueue::View> work;  // nothing: no client has asked for work
  std::string ending;                   // empty while training
  std::array<uint64_t, kStoreMethods> requests{};
  std::vector<uint64_t> staleness;  // [i]: pushes with staleness i; the last: that or more
  RowCounts rows;
  Listener::Stats listener;
};

class StoreService final : public RequestHandler {
 public:
  // `loop`, and what `background` runs on, must outlive the service.
  StoreService(EventLoop& loop, StoreOptions options);
  ~StoreService() override;

  // Takes over what options.memory holds of an earlier life of this ps; nothing if it is empty. Call it before the
  // first request. FailedPrecondition: it belongs to another job.
  [[nodiscard]] absl::Status Recover();

  void OnConnect(ConnectionId connection, const std::string& peer) override;
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override;
  void OnDisconnect(ConnectionId connection) override;

  // True once training has ended and the linger is over: the process may exit. `outcome` is then OK, or says why the
  // service gave up.
  bool finished() const { return finished_; }
  const absl::Status& outcome() const { return outcome_; }

  // Ends as if kShutdown had come.
  void Shutdown(const std::string& reason);

  using View = StoreView;
  View MakeView() const;
  // Sets the listener's counters for the status page; the function must stay callable as long as the service.
  void SetListenerStats(std::function<Listener::Stats()> stats) { listener_stats_ = std::move(stats); }

 private:
  struct Waiter {
    ConnectionId connection;
    int client;
    AwaitReadyRequest request;
    Responder responder;
  };
  void Dispatch(const IncomingRequest& request, const DecodedBulk& decoded, Responder responder);
  void OnJoin(const IncomingRequest& request, Responder responder);
  void OnInitialize(ConnectionId connection, const InitializeRequest& message, ByteSpan bulk, Responder responder);
  [[nodiscard]] absl::Status Initialize(ConnectionId connection, const InitializeRequest& message, ByteSpan bulk);
  void OnAwaitReady(const IncomingRequest& request, Responder responder);
  bool ReadyFor(const AwaitReadyRequest& request) const;
  void AnswerReady(int client, const AwaitReadyRequest& request, Responder responder);
  void OnPushPull(ConnectionId connection, const PushPullRequest& message, ByteSpan bulk, Responder responder);
  [[nodiscard]] absl::Status CheckPushPull(ConnectionId connection, const PushPullRequest& message, size_t bulk_bytes);
  void CountNonFinite(const PushPullRequest& message);
  uint64_t CountPush(const PushPullRequest& message, bool new_update);  // returns the updates counted before it
  [[nodiscard]] absl::Status CheckRows(const IncomingRequest& request, const RowsRequest& message, size_t bulk_bytes);
  void OnRows(const IncomingRequest& request, const RowsRequest& message, ByteSpan bulk, Responder responder);
  void AnswerPush(const HeldPull& pull, const PushPullReply& pushed, Responder responder);
  // Completes a reply with what every answer says, and encodes it. Send it before the next one is made.
  absl::string_view CompleteReply(const Stamp& stamp, PushPullReply reply);
  PushPullReply ApplyPush(const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled);
  void OnStamped(const IncomingRequest& request, Responder responder);
  void OnBarrier(const IncomingRequest& request, Responder responder);
  void OnAwaitTurn(const IncomingRequest& request, Responder responder);
  void OnQueue(const IncomingRequest& request, const DecodedBulk& decoded, Responder responder);
  void OnTakeWork(const IncomingRequest& request, Responder responder);
  void OnGiveUpWork(const IncomingRequest& request, Responder responder);
  void OnShutdown(const IncomingRequest& request, Responder responder);
  void OnDirect(const IncomingRequest& request, Responder responder);
  void OnSavePart(const IncomingRequest& request, Responder responder);
  void OnExportPart(const IncomingRequest& request, Responder responder);
  void OnCut(const IncomingRequest& request, Responder responder);
  void OnCommitCheckpoint(const IncomingRequest& request, Responder responder);
  [[nodiscard]] absl::Status NeedModel() const;  // Aborted without one
  [[nodiscard]] absl::Status NeedLead() const;   // InvalidArgument: this isn't ps 0
  // Aborted: the arena's values are of another generation.
  [[nodiscard]] absl::Status CheckGeneration(uint64_t generation) const;
  [[nodiscard]] absl::Status NeedTraining() const;  // Cancelled once it has ended
  void RecordClient(int client);
  std::vector<uint64_t> AllStaleness() const;  // of pushes, and of direct updates
  void RecordChief();
  void OnLoadCheckpoint(const IncomingRequest& request, Responder responder);
  void OnReportLoad(const IncomingRequest& request, Responder responder);
  void LookAtEnd();
  void LookAtLeaving();
  void LookAgainAt(absl::Time when);
  void AnswerKept();  // fails every open request when training, and then the ps, has ended
  void End(absl::Status outcome, const std::string& why);

  EventLoop& loop_;
  const StoreOptions options_;
  const absl::Time started_;
  ClientTable clients_;
  BufferPool buffers_;
  DecodedBulks bulks_;
  std::string reply_;  // for the last push; kept for its memory
  std::shared_ptr<ArenaMemory> memory_;
  std::shared_ptr<Arena> arena_;  // shared with background work
  Gates gates_;
  QueueRequests queues_;
  WorkRequests work_;
  DirectDoor door_;
  PartSaver part_saver_;
  CheckpointHold hold_;
  int64_t known_step_ = 0;  // except on ps 0: the highest global step known to a sender
  std::vector<Waiter> waiters_;
  // A checkpoint that must be loaded, until the chief has reported.
  struct Load {
    std::string path;
    Responder responder;
  };
  std::optional<Load> load_;
  std::array<uint64_t, kStoreMethods> requests_{};
  std::vector<uint64_t> staleness_;
  RowCounts rows_;
  std::function<Listener::Stats()> listener_stats_;
  std::string ending_;
  absl::Time ended_at_;
  bool lingering_ = false;
  bool finished_ = false;
  absl::Status outcome_;
  std::optional<EventLoop::TimerId> end_timer_;
};

}  // namespace muster
