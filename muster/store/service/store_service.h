// The parameter server as a state machine: requests in, answers out (docs/store_protocol.md has every message and
// step). No thread, no clock and no waiting of its own: it runs on the handlers of its EventLoop, so a simulated world
// can run it as well as a listener. Writing a part of a checkpoint is the one thing that takes long; `background` runs
// it.
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
#include "muster/store/checkpoints/cut_follower.h"
#include "muster/store/checkpoints/part_saver.h"
#include "muster/store/direct/direct_door.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/gates.h"
#include "muster/store/messages/messages.h"
#include "muster/store/queues/queue_requests.h"
#include "muster/store/service/buffer_pool.h"
#include "muster/store/service/decoded_request.h"
#include "muster/store/service/row_requests.h"
#include "muster/store/service/work_requests.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

struct StoreOptions {
  std::string task = "ps:0";         // for messages and the status page
  bool lead = true;                  // ps 0: counts the global step and commits checkpoints
  std::vector<std::string> workers;  // the tasks that may join, the chief among them: "chief:0", "worker:0", …
  LeaseOptions lease;
  uint64_t incarnation = 1;  // of this process
  // How long the store answers late questions after the end.
  absl::Duration linger = absl::Milliseconds(300);
  // How long a shutdown waits, before that, for those who are training: they learn of it with their next push, and the
  // chief then saves its last checkpoint.
  absl::Duration shutdown_grace = absl::Seconds(20);
  FileSystem* files = nullptr;  // borrowed for the service's life
  PartSaver::Background background;
  // Where the model is kept. Who holds on to its descriptor can start another service on it after this one was killed,
  // which goes on where this one was. Null: memory of its own, gone with it.
  std::shared_ptr<ArenaMemory> memory;
  // All who train are threads of this process: their model ends with them, and no update need survive a death.
  bool one_process = false;
  ArenaPort* port = nullptr;    // borrowed: where workers on this host get the arena; null: nobody does
  ArenaProbe* probe = nullptr;  // of tests
  Track* track = nullptr;       // borrowed: of the loop's thread; null: nothing is recorded
  uint64_t queue_bytes = FifoQueuesOptions().bytes;  // that all queues here may hold when they are full
  std::shared_ptr<WorkQueue> work;                   // of ps 0, shared with who takes from it without messages; or null
};

// Everything that the status page shows; see store_status.h.
struct StoreView {
  const StoreOptions* options = nullptr;
  absl::Time now;
  absl::Time started;
  Arena* arena = nullptr;  // null: the model isn't initialised
  const ClientTable* clients = nullptr;
  std::vector<WaitingFor> waiting;  // one a client: at a gate, or a queue
  std::vector<FifoQueues::View> queues;
  std::optional<WorkQueue::View> work;  // nothing: nobody has asked for work
  std::string ending;                   // empty while training
  std::array<uint64_t, kStoreMethods> requests{};
  std::vector<uint64_t> staleness;  // [i]: pushes with staleness i; the last: that or more
  RowCounts rows;
  Listener::Stats listener;
};

// A request on its way to its handler, and where its answer goes.
struct IncomingCall {
  StoreMethod method;
  ConnectionId connection;
  ByteSpan bulk;
  Responder responder;
};

class StoreService final : public RequestHandler {
 public:
  // `loop` must outlive the service, and so must what `background` runs.
  StoreService(EventLoop& loop, StoreOptions options);
  ~StoreService() override;

  // Takes over what options.memory holds of an earlier life of this ps; nothing if it is empty. To be called before the
  // first request. FailedPrecondition: it belongs to another job.
  [[nodiscard]] absl::Status Recover();

  void OnConnect(ConnectionId connection, const std::string& peer) override;
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override;
  void OnDisconnect(ConnectionId connection) override;

  // True once training has ended and the linger is over: the process may go. `outcome` is then OK, or says why it had
  // to give up.
  bool finished() const { return finished_; }
  const absl::Status& outcome() const { return outcome_; }

  // Ends as if kShutdown had come.
  void Shutdown(const std::string& reason);

  using View = StoreView;
  View MakeView() const;
  // The listener's counters, for the status page; the function must stay callable as long as the service.
  void SetListenerStats(std::function<Listener::Stats()> stats) { listener_stats_ = std::move(stats); }

 private:
  struct Waiter {
    ConnectionId connection;
    int client;
    AwaitReadyRequest request;
    Responder responder;
  };
  void Dispatch(const IncomingRequest& request, const DecodedRequest& decoded, Responder responder);
  template <typename Message>
  void Answer(const IncomingRequest& request, const DecodedRequest& decoded, IncomingCall call);
  // One for each message. OK: the call is answered, or will be; an error is its answer.
  absl::Status On(const StatusRequest&, IncomingCall& call);
  absl::Status On(const ClockRequest&, IncomingCall& call);
  absl::Status On(const JoinRequest& message, IncomingCall& call);
  absl::Status On(const InitializeRequest& message, IncomingCall& call);
  absl::Status On(AwaitReadyRequest message, IncomingCall& call);
  absl::Status On(const PushPullRequest& message, IncomingCall& call);
  absl::Status On(const RowsRequest& message, IncomingCall& call);
  absl::Status On(const HeartbeatRequest& message, IncomingCall& call);
  absl::Status On(const DoneRequest& message, IncomingCall& call);
  absl::Status On(const BarrierRequest& message, IncomingCall& call);
  absl::Status On(const AwaitTurnRequest& message, IncomingCall& call);
  absl::Status On(const OpenQueueRequest& message, IncomingCall& call);
  absl::Status On(const QueueRequest& message, IncomingCall& call);
  absl::Status On(const TakeWorkRequest& message, IncomingCall& call);
  absl::Status On(const GiveUpWorkRequest& message, IncomingCall& call);
  absl::Status On(const ShutdownRequest& message, IncomingCall& call);
  absl::Status On(const OpenDirectRequest& message, IncomingCall& call);
  absl::Status On(const EnterDirectRequest& message, IncomingCall& call);
  absl::Status On(const SavePartRequest& message, IncomingCall& call);
  absl::Status On(const ExportPartRequest& message, IncomingCall& call);
  absl::Status On(const HoldRequest& message, IncomingCall& call);
  absl::Status On(const MarkRequest& message, IncomingCall& call);
  absl::Status On(const CommitCheckpointRequest& message, IncomingCall& call);
  absl::Status On(LoadCheckpointRequest message, IncomingCall& call);
  absl::Status On(const ReportLoadRequest& message, IncomingCall& call);
  [[nodiscard]] absl::Status HearChief(ConnectionId connection, const Stamp& stamp, uint64_t chief_epoch);
  [[nodiscard]] absl::Status Initialize(ConnectionId connection, const InitializeRequest& message, ByteSpan bulk);
  bool ReadyFor(const AwaitReadyRequest& request) const;
  void AnswerReady(int client, const AwaitReadyRequest& request, Responder responder);
  [[nodiscard]] absl::Status CheckPushPull(ConnectionId connection, const PushPullRequest& message, size_t bulk_bytes);
  void PushAndAnswer(const PushPullRequest& message, IncomingCall& call);
  void CountNonFinite(const PushPullRequest& message);
  uint64_t CountPush(const PushPullRequest& message, bool new_update);  // returns the updates counted before it
  [[nodiscard]] absl::Status CheckRows(StoreMethod method, ConnectionId connection, const RowsRequest& message,
                                       size_t bulk_bytes);
  void AnswerPush(const HeldPull& pull, const PushPullReply& pushed, Responder responder);
  // With what every answer says; to be sent before the next one is made.
  absl::string_view CompleteReply(const Stamp& stamp, PushPullReply reply);
  PushPullReply ApplyPush(const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled);
  [[nodiscard]] absl::Status NeedModel() const;  // Aborted without one
  [[nodiscard]] absl::Status NeedLead() const;   // InvalidArgument: this isn't ps 0
  // Aborted: the arena's values are of another one.
  [[nodiscard]] absl::Status CheckGeneration(uint64_t generation) const;
  [[nodiscard]] absl::Status NeedTraining() const;  // Cancelled once it has ended
  void RecordClient(int client);
  std::vector<uint64_t> AllStaleness() const;  // of pushes, and of direct updates
  void RecordChief();
  void LookAtEnd();
  void LookAtLeaving();
  void LookAgainAt(absl::Time when);
  void AnswerKept();  // nobody is left without an answer when training, and then the ps, has come to its end
  void End(absl::Status outcome, const std::string& why);

  EventLoop& loop_;
  const StoreOptions options_;
  const absl::Time started_;
  ClientTable clients_;
  BufferPool buffers_;
  DecodedRequests bulks_;
  std::string reply_;  // of the last push, for its memory
  std::shared_ptr<ArenaMemory> memory_;
  std::shared_ptr<Arena> arena_;  // shared with what runs in the background
  Gates gates_;
  QueueRequests queues_;
  WorkRequests work_;
  DirectDoor door_;
  PartSaver part_saver_;
  CutFollower hold_;
  int64_t known_step_ = 0;  // not ps 0: the highest global step that a sender knew of
  std::vector<Waiter> waiters_;
  // A checkpoint that somebody wants loaded, until the chief has reported.
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
