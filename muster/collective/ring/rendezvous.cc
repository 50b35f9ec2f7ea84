#include "muster/collective/ring/rendezvous.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wait_notices.h"
#include "muster/collective/ring/rendezvous_messages.h"
#include "muster/collective/shm/shm_group_listener.h"

namespace muster {
namespace {

// Workers that are started together mostly meet before this.
constexpr absl::Duration kFirstNotice = absl::Seconds(2);
// How often a wait checks whether it must end.
constexpr absl::Duration kSlice = absl::Milliseconds(100);
// How long to wait for the end of the connections: the other ranks have their answer, and close them or ask this rank
// to.
constexpr absl::Duration kFarewell = absl::Seconds(5);
// How long a rank waits before it retries, after rank 0 has gone or says that the group must meet again.
constexpr absl::Duration kPause = absl::Milliseconds(100);
// The kernel may refuse to pass more descriptors to one user's processes than this many ranks need.
constexpr int kMostShmRanks = 16;

absl::Status StoppedWaiting() { return absl::CancelledError("asked to stop while waiting for the other workers"); }

// Runs the loop until `done`. DeadlineExceeded names `whom`; Cancelled names nobody.
absl::Status WaitUntil(TcpEventLoop& loop, const GroupOptions& options, absl::Time deadline,
                       absl::FunctionRef<bool()> done, absl::FunctionRef<std::string()> whom) {
  WaitNotices notices(loop.Now(), kFirstNotice);
  while (!loop.RunUntil(done, std::min(deadline, loop.Now() + kSlice))) {
    if (options.stop_requested()) return StoppedWaiting();
    if (loop.Now() >= deadline)
      return absl::DeadlineExceededError(
          absl::StrCat(whom(), " has not come to the all-reduce group in time: is it running?"));
    if (notices.Due(loop.Now())) LogInfo("Waiting ", notices.Since(loop.Now()), " for ", whom(), " to train together.");
  }
  return absl::OkStatus();
}

// What rank 0 knows of one other rank.
struct RankState {
  bool entered = false;
  ConnectionId connection{};
  std::optional<Responder> answer;  // for the request that the rank waits on
  bool agreed = false;
  bool attached = false;
};

// Rank 0's side. Phase one: ranks enter and wait. Phase two: each says whether it has connected to the socket of the
// shared memory. A rank that goes away sends all ranks back to phase one.
class RendezvousServer final : public RequestHandler {
 public:
  RendezvousServer(const GroupOptions& options, EnterReply welcome)
      : options_(options), size_(static_cast<int>(options.names.size())), welcome_(std::move(welcome)), ranks_(size_) {}

  void OnConnect(ConnectionId, const std::string&) override {}
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest&) override {
    return absl::InvalidArgumentError("a rendezvous takes no bulk");
  }
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget>, Responder responder) override {
    if (request.method == static_cast<uint16_t>(RendezvousMethod::kEnter)) return Enter(request, std::move(responder));
    if (request.method == static_cast<uint16_t>(RendezvousMethod::kAgree)) return Agree(request, std::move(responder));
    if (request.method == static_cast<uint16_t>(RendezvousMethod::kContinue))
      return Continue(request, std::move(responder));
    responder.Fail(absl::UnimplementedError(absl::StrCat("a rendezvous knows no method ", request.method)));
  }
  void OnDisconnect(ConnectionId connection) override {
    for (int rank = 1; rank < size_; ++rank) {
      if (!ranks_[rank].entered || ranks_[rank].connection != connection) continue;
      ranks_[rank] = {};
      if (agreeing_ && !answered_) StartAnew(options_.names[rank]);
    }
  }

  // True if every rank has said whether it is attached.
  bool complete() const {
    return failure_.ok() && agreeing_ &&
           std::all_of(ranks_.begin() + 1, ranks_.end(), [](const RankState& state) { return state.agreed; });
  }
  const absl::Status& failure() const { return failure_; }
  // After AnswerAll or Refuse: true once all ranks have their answer and wait only for this server's end.
  bool done() const {
    return std::none_of(ranks_.begin(), ranks_.end(), [](const RankState& state) { return state.entered; });
  }
  bool all_attached() const {
    return std::all_of(ranks_.begin() + 1, ranks_.end(), [](const RankState& state) { return state.attached; });
  }
  std::string Missing() const {
    std::vector<std::string> missing;
    for (int rank = 1; rank < size_; ++rank)
      if (!(agreeing_ ? ranks_[rank].agreed : ranks_[rank].entered)) missing.push_back(options_.names[rank]);
    return absl::StrJoin(missing, ", ");
  }
  void AnswerAll(bool shared_memory) {
    answered_ = true;
    for (int rank = 1; rank < size_; ++rank)
      std::exchange(ranks_[rank].answer, std::nullopt)
          ->Send(Encode(AgreeReply{.shared_memory = shared_memory ? 1U : 0U}));
  }
  // Tells every rank why there is no group.
  void Refuse(const absl::Status& why) {
    answered_ = true;
    for (RankState& state : ranks_)
      if (state.answer) std::exchange(state.answer, std::nullopt)->Fail(why);
  }

 private:
  void Enter(const IncomingRequest& request, Responder responder) {
    EnterRequest message;
    if (!Decode(request.control, message))
      return responder.Fail(absl::InvalidArgumentError("malformed rendezvous message"));
    if (message.size != static_cast<uint32_t>(size_) || message.rank == 0 || message.rank >= message.size ||
        message.choice != static_cast<uint32_t>(options_.choice)) {
      failure_ = absl::InvalidArgumentError(absl::StrCat(
          "rank ", message.rank, " takes the all-reduce group for one of ", message.size, " with choice ",
          message.choice, ", ", options_.names[0], " for one of ", size_, " with choice ",
          static_cast<int>(options_.choice), ": start all workers with the same cluster and the same settings"));
      return responder.Fail(failure_);
    }
    // The rank was restarted too late: the others have their answers already, and will miss this rank in the group.
    if (answered_) return responder.Fail(absl::UnavailableError("the group is at work already"));
    if (agreeing_) StartAnew(options_.names[message.rank]);
    // A newer process of that rank: the older one is dead, or will be told.
    RankState& state = ranks_[message.rank];
    if (state.answer) state.answer->Fail(absl::AbortedError("another process has come as this rank"));
    state = {.entered = true, .connection = request.connection, .answer = std::move(responder)};
    if (!std::all_of(ranks_.begin() + 1, ranks_.end(), [](const RankState& one) { return one.entered; })) return;
    agreeing_ = true;
    for (int rank = 1; rank < size_; ++rank) std::exchange(ranks_[rank].answer, std::nullopt)->Send(Encode(welcome_));
  }

  void Agree(const IncomingRequest& request, Responder responder) {
    AgreeRequest message;
    if (!Decode(request.control, message) || message.rank == 0 || message.rank >= static_cast<uint32_t>(size_))
      return responder.Fail(absl::InvalidArgumentError("malformed rendezvous message"));
    RankState& state = ranks_[message.rank];
    if (!agreeing_ || !state.entered || state.connection != request.connection)
      return responder.Fail(absl::UnavailableError("the group meets again"));
    state.agreed = true;
    state.attached = message.attached != 0;
    state.answer = std::move(responder);
  }

  // This request is answered by the end of the connection.
  void Continue(const IncomingRequest& request, Responder responder) {
    continuing_.push_back(std::move(responder));
    OnDisconnect(request.connection);
  }

  void StartAnew(const std::string& because_of) {
    LogInfo(because_of, " was restarted: the all-reduce group meets again.");
    for (RankState& state : ranks_) {
      if (state.answer) state.answer->Fail(absl::UnavailableError("the group meets again"));
      state = {};
    }
    agreeing_ = false;
  }

  const GroupOptions& options_;
  const int size_;
  const EnterReply welcome_;
  std::vector<RankState> ranks_;  // by rank; the first isn't used
  std::vector<Responder> continuing_;
  bool agreeing_ = false;  // phase two
  bool answered_ = false;
  absl::Status failure_;
};

// Plain TCP is enough for a few small messages.
TcpOptions Plain() { return {.shared_memory = {.enabled = false}}; }

// Sends one request to rank 0, which answers it much later.
absl::StatusOr<Reply> Ask(TcpEventLoop& loop, Channel& channel, const GroupOptions& options, RendezvousMethod method,
                          std::string control, absl::Time deadline) {
  std::optional<absl::StatusOr<Reply>> answer;
  const Channel::CallId call =
      channel.Call({.method = static_cast<uint16_t>(method), .control = std::move(control), .deadline = deadline},
                   [&](absl::StatusOr<Reply> reply) { answer = std::move(reply); });
  const absl::Status waited = WaitUntil(
      loop, options, deadline, [&] { return answer.has_value(); },
      [&] {
        const std::string trouble = channel.trouble();
        const std::string rank_zero = absl::StrCat(options.names[0], " (", channel.peer());
        return trouble.empty() ? absl::StrCat("another worker, which ", rank_zero, ") names,")
                               : absl::StrCat(rank_zero, ": ", trouble, ")");
      });
  if (waited.ok()) return *std::move(answer);
  channel.Cancel(call);
  loop.RunUntil([&] { return answer.has_value(); }, absl::InfiniteFuture());
  return waited;
}

absl::StatusOr<Agreement> MeetOnce(TcpEventLoop& loop, Channel& channel, const GroupOptions& options,
                                   absl::Time deadline) {
  const auto rank = static_cast<uint32_t>(options.rank);
  const auto size = static_cast<uint32_t>(options.names.size());
  ASSIGN_OR_RETURN(const Reply entered,
                   Ask(loop, channel, options, RendezvousMethod::kEnter,
                       Encode(EnterRequest{rank, size, static_cast<uint32_t>(options.choice)}), deadline));
  EnterReply welcome;
  if (!Decode(entered.control, welcome)) return absl::InternalError("rank 0 sent a malformed answer");
  std::unique_ptr<ShmGroupConnector> connector;
  if (!welcome.socket.empty()) {
    auto connected = ShmGroupConnector::Connect(welcome.socket, welcome.ticket, options.rank);
    if (connected.ok()) connector = *std::move(connected);
  }
  ASSIGN_OR_RETURN(const Reply agreed, Ask(loop, channel, options, RendezvousMethod::kAgree,
                                           Encode(AgreeRequest{rank, connector ? 1U : 0U}), deadline));
  AgreeReply agreement;
  if (!Decode(agreed.control, agreement)) return absl::InternalError("rank 0 sent a malformed answer");
  if (agreement.shared_memory == 0) {
    // Rank 0 is next reached at the same address, but only after its server has gone.
    const absl::Status gone =
        Ask(loop, channel, options, RendezvousMethod::kContinue, "", loop.Now() + kFarewell).status();
    return absl::IsCancelled(gone) ? absl::StatusOr<Agreement>(gone) : Agreement();
  }
  if (!connector) return absl::InternalError("rank 0 wants to share memory with this rank, which is not on its host");
  return connector->Receive(options.rank, static_cast<int>(size));
}

absl::StatusOr<Agreement> ServeRendezvous(TcpEventLoop& loop, const GroupOptions& options, absl::Time deadline) {
  const int size = static_cast<int>(options.names.size());
  std::unique_ptr<ShmGroupListener> shm_listener;
  if (options.choice != CollectiveChoice::kRing && size <= kMostShmRanks) {
    auto opened = ShmGroupListener::Open(size);
    if (opened.ok()) shm_listener = *std::move(opened);
  }
  TcpTransport transport(loop, options.token, Plain());
  RendezvousServer server(options,
                          shm_listener ? EnterReply{shm_listener->ticket(), shm_listener->name()} : EnterReply{});
  ASSIGN_OR_RETURN(const auto listener, transport.Listen(options.addresses[0], server));
  RETURN_IF_ERROR(WaitUntil(
      loop, options, deadline, [&] { return server.complete() || !server.failure().ok(); },
      [&] { return absl::StrCat(server.Missing(), ", awaited at ", options.addresses[0], ","); }));
  absl::StatusOr<Agreement> agreement = Agreement();
  if (!server.failure().ok()) {
    agreement = server.failure();
  } else {
    if (shm_listener && server.all_attached() && shm_listener->AllConnected()) {
      agreement = shm_listener->SendMembers();
    } else if (options.choice == CollectiveChoice::kShm) {
      agreement = absl::FailedPreconditionError(
          "the workers do not share memory: they are on different hosts, of different users, or more than 16; leave "
          "the choice to muster");
    }
  }
  agreement.ok() ? server.AnswerAll(*agreement != nullptr) : server.Refuse(agreement.status());
  loop.RunUntil([&] { return server.done(); }, loop.Now() + kFarewell);
  return agreement;
}

}  // namespace

absl::StatusOr<Agreement> MeetAsRankZero(TcpEventLoop& loop, const GroupOptions& options, absl::Time deadline) {
  for (;;) {
    auto agreement = ServeRendezvous(loop, options, deadline);
    // A rank that died after it had connected enters again, or the deadline passes.
    if (!absl::IsUnavailable(agreement.status()) || loop.Now() >= deadline) return agreement;
  }
}

absl::StatusOr<Agreement> MeetRankZero(TcpEventLoop& loop, const GroupOptions& options, absl::Time deadline) {
  TcpTransport transport(loop, options.token, Plain());
  const std::unique_ptr<Channel> channel = transport.Connect(options.addresses[0]);
  for (;;) {
    auto agreement = MeetOnce(loop, *channel, options, deadline);
    if (!absl::IsUnavailable(agreement.status()) || loop.Now() >= deadline) return agreement;
    loop.RunUntil([] { return false; }, loop.Now() + kPause);
    if (options.stop_requested()) return StoppedWaiting();
  }
}

}  // namespace muster
