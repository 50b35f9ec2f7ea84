// The parameter server as a state machine: requests in, answers out (docs/store/ has every message and
// step). It has no thread, clock or wait of its own: it runs on the handlers of its EventLoop, so that a simulated
// world can run it as well as a listener. Only writing a part of a checkpoint takes long; `background` runs that.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/observe/track.h"
#include "muster/store/arena/arena.h"
#include "muster/store/checkpoints/cut_follower.h"
#include "muster/store/checkpoints/part_saver.h"
#include "muster/store/direct/direct_access.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/gates.h"
#include "muster/store/messages/messages.h"
#include "muster/store/queues/queue_requests.h"
#include "muster/store/service/buffer_pool.h"
#include "muster/store/service/checkpoint_requests.h"
#include "muster/store/service/cut_off_watch.h"
#include "muster/store/service/decoded_request.h"
#include "muster/store/service/incoming_call.h"
#include "muster/store/service/ps_state.h"
#include "muster/store/service/push_requests.h"
#include "muster/store/service/row_requests.h"
#include "muster/store/service/store_options.h"
#include "muster/store/service/work_requests.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

// Everything that the status page shows; see store_status.h.
struct StoreView {
  const StoreOptions* options = nullptr;
  absl::Time now;
  absl::Time started;
  Arena* arena = nullptr;  // null: the model isn't initialised
  const ClientTable* clients = nullptr;
  std::vector<WaitingFor> waiting;  // one per client: at a gate, or a queue
  std::string who_waits;            // for whom in the round; empty: nobody does
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
  // Whether a client trains here that is heard, connected, and hasn't said done.
  bool IsInUse() const;

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
  void Dispatch(const IncomingRequest& request, const DecodedRequest& decoded, Responder responder);
  template <typename Message>
  auto& HandlerOf();  // the object with an On() for it
  template <typename Message>
  void Answer(const IncomingRequest& request, const DecodedRequest& decoded, IncomingCall call);
  // One for each message. OK: the call is answered, or will be; an error is its answer.
  absl::Status On(const StatusRequest&, IncomingCall& call);
  absl::Status On(const ClockRequest&, IncomingCall& call);
  absl::Status On(const JoinRequest& message, IncomingCall& call);
  absl::Status On(const InitializeRequest& message, IncomingCall& call);
  absl::Status On(AwaitReadyRequest message, IncomingCall& call);
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
  [[nodiscard]] absl::Status Initialize(ConnectionId connection, const InitializeRequest& message, ByteSpan bulk);
  bool ReadyFor(const AwaitReadyRequest& request) const;
  void AnswerReady(int client, const AwaitReadyRequest& request, Responder responder);
  void RecordClient(int client);
  void RecordChief();
  void CheckEnd();
  void CheckLeaving();
  void Linger(absl::Duration linger);
  void CheckEndAt(absl::Time when);
  void AnswerKept();  // fails every open request when training, and then the ps, has ended
  void End(absl::Status outcome, const std::string& why);

  PsState ps_;
  const absl::Time started_;
  BufferPool buffers_;
  DecodedRequests bulks_;
  std::shared_ptr<ArenaMemory> memory_;
  Gates gates_;
  QueueRequests queues_;
  WorkRequests work_;
  DirectAccess access_;
  PartSaver part_saver_;
  CutFollower cut_;
  CheckpointRequests checkpoints_;
  PushRequests pushes_;
  CutOffWatch cut_off_;
  std::vector<Waiter> waiters_;
  std::array<uint64_t, kStoreMethods> requests_{};
  std::function<Listener::Stats()> listener_stats_;
  absl::Time ended_at_;
  bool lingering_ = false;
  bool was_shut_down_ = false;
  bool finished_ = false;
  absl::Status outcome_;
  std::optional<EventLoop::TimerId> end_timer_;
};

}  // namespace muster
