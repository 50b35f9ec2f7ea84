#include "muster/collective/ring/ring_collective.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/collective/checked_call.h"
#include "muster/collective/ring/rendezvous_messages.h"
#include "muster/collective/ring/ring_sums.h"
#include "muster/collective/segment_range.h"
#include "muster/collective/share.h"

namespace muster {
namespace {

// How many pieces to request before the earlier ones have come: the wire is never idle, and little has to be kept.
constexpr size_t kAskedAhead = kRingRoom;
// How long a rank that ends waits until both neighbours have heard why. Closing a connection with unread bytes also
// drops what is on its way to the other end.
constexpr absl::Duration kToldWithin = absl::Milliseconds(500);

// A rank computes between two operations, for as long as it takes, and answers nothing meanwhile; only its connection
// shows that it lives.
TcpOptions Patient() {
  TcpOptions options;
  options.stall_timeout = absl::Hours(24);
  options.silence_timeout = absl::Hours(24);
  // A ring is for ranks that share no memory; ranks that do have a faster way than messages.
  options.shared_memory.enabled = false;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RingCollective>> RingCollective::Create(const GroupOptions& options) {
  auto ring = std::unique_ptr<RingCollective>(new RingCollective(options));
  ASSIGN_OR_RETURN(ring->listener_, ring->transport_.Listen(ring->address_, *ring));
  ring->Watch();
  return ring;
}

RingCollective::RingCollective(const GroupOptions& options)
    : names_(options.names),
      address_(options.addresses[options.rank]),
      address_before_(options.addresses[(options.rank + options.names.size() - 1) % options.names.size()]),
      rank_(options.rank),
      size_(static_cast<int>(options.names.size())),
      transport_(loop_, options.token, Patient()),
      in_use_(std::make_shared<int>()) {
  MUSTER_CHECK(size_ >= 2);
}

// Doesn't tell the neighbours: to them this rank has died. Destroys first what calls back when it ends, as the
// callbacks use the members declared after it.
RingCollective::~RingCollective() {
  channel_.reset();
  listener_.reset();
}

absl::Status RingCollective::AllReduce(const Segments& in, const MutableSegments& out, DType dtype, Reduction reduction,
                                       absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfAllReduce(in, out, dtype, reduction));
  return Reduce(call, in, out, /*gather=*/true, deadline);
}

absl::Status RingCollective::ReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                           Reduction reduction, absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfReduceScatter(in, out, dtype, reduction, rank_, size_));
  return Reduce(call, in, out, /*gather=*/false, deadline);
}

absl::Status RingCollective::Reduce(const CollectiveCall& call, const Segments& in, const MutableSegments& out,
                                    bool gather, absl::Time deadline) {
  const auto dtype = static_cast<DType>(call.dtype);
  const RingPieces pieces(call.bytes / DTypeSize(dtype), DTypeSize(dtype), size_);
  RingSums sums(dtype, pieces, rank_, size_, partial_);
  sums.Begin(in);
  const size_t out_begin = gather ? 0 : pieces.ShareBegin(rank_);
  const size_t last = size_ - 2;  // the last stage of the sums
  Flow flow{.call = call, .stages = gather ? 2 * (last + 1) : last + 1, .pieces = pieces.count()};
  // The share that the rank before has in stage s is the one that this rank has in stage s + 1 and then passes on.
  const auto share_at = [this](size_t stage) { return (rank_ + 2 * size_ - 2 - static_cast<int>(stage)) % size_; };
  const auto gathered_at = [this, last](size_t stage) {
    return (rank_ + 2 * size_ - 1 - static_cast<int>(stage - last - 1)) % size_;
  };
  const auto whole = [&](int share, size_t piece) {
    const auto [begin, bytes] = pieces.At(share, piece);
    return RangeOf(out, begin - out_begin, bytes);
  };
  flow.source = [&](size_t stage, size_t piece) {
    if (stage <= last) return Segments{sums.Partial((share_at(stage) + 1) % size_, piece)};
    return ReadOnly(whole((gathered_at(stage) + 1) % size_, piece));
  };
  flow.target = [&](size_t stage, size_t piece) {
    if (stage <= last) return MutableSegments{sums.Room(stage * pieces.count() + piece, share_at(stage), piece)};
    return whole(gathered_at(stage), piece);
  };
  flow.received = [&](size_t stage, size_t piece) {
    if (stage > last) return;
    sums.Add(stage * pieces.count() + piece, share_at(stage), piece, in);
    if (stage == last) sums.Finish(piece, static_cast<Reduction>(call.reduction), out, out_begin);
  };
  return Run(flow, deadline);
}

absl::Status RingCollective::AllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                       absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfAllGather(in, out, element_bytes, rank_, size_));
  const Share mine = ShareOf(call.bytes / element_bytes, rank_, size_);
  VisitBoth(in, 0, out, mine.begin * element_bytes, mine.elements * element_bytes,
            [](ByteSpan from, std::byte* to) { std::memmove(to, from.data(), from.size()); });
  const RingPieces pieces(call.bytes / element_bytes, element_bytes, size_);
  Flow flow{.call = call, .stages = static_cast<size_t>(size_) - 1, .pieces = pieces.count()};
  const auto share_at = [this](size_t stage) { return (rank_ + 2 * size_ - 1 - static_cast<int>(stage)) % size_; };
  const auto at = [&](int share, size_t piece) {
    const auto [begin, bytes] = pieces.At(share, piece);
    return RangeOf(out, begin, bytes);
  };
  flow.source = [&](size_t stage, size_t piece) { return ReadOnly(at((share_at(stage) + 1) % size_, piece)); };
  flow.target = [&](size_t stage, size_t piece) { return at(share_at(stage), piece); };
  flow.received = [](size_t, size_t) {};
  return Run(flow, deadline);
}

absl::Status RingCollective::Broadcast(const MutableSegments& data, int root, absl::Time deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, CallOfBroadcast(data, root, size_));
  const RingPieces pieces(call.bytes, 1, 1);
  Flow flow{.call = call,
            .stages = 1,
            .pieces = pieces.count(),
            .receives = rank_ != root,
            .serves = after() != root,
            .first_ready = rank_ == root,
            .hop = 0};
  const auto at = [&](size_t piece) {
    const auto [begin, bytes] = pieces.At(0, piece);
    return RangeOf(data, begin, bytes);
  };
  flow.source = [&](size_t, size_t piece) { return ReadOnly(at(piece)); };
  flow.target = [&](size_t, size_t piece) { return at(piece); };
  flow.received = [](size_t, size_t) {};
  return Run(flow, deadline);
}

// Passes empty pieces once round the ring: no rank returns before all have come.
absl::Status RingCollective::Barrier(absl::Time deadline) {
  Flow flow{.call = {.operation = CollectiveOperation::kBarrier}, .stages = static_cast<size_t>(size_) - 1};
  flow.source = [](size_t, size_t) { return Segments(); };
  flow.target = [](size_t, size_t) { return MutableSegments(); };
  flow.received = [](size_t, size_t) {};
  return Run(flow, deadline);
}

absl::Status RingCollective::Run(Flow& flow, absl::Time deadline) {
  RETURN_IF_ERROR(failure_);
  // Handles what neighbours have said since the last operation, before sending anything to one that has gone.
  loop_.RunUntil([] { return false; }, absl::InfinitePast());
  flow_ = &flow;
  ++number_;
  ready_.assign(flow.stages + 1, std::vector<bool>(flow.pieces));
  if (flow.first_ready) ready_[0].assign(flow.pieces, true);
  asked_ = received_ = served_ = 0;
  AskForMore();
  ServeWaiting();
  // Sent memory may change again only when the kernel has it.
  const auto complete = [&] { return HasAll() && HasServedAll() && in_use_.use_count() == 1; };
  const auto over = [&] { return complete() || !failure_.ok() || !WhyStuck().ok(); };
  bool told = false;
  const bool in_time = AwaitEnd(over, deadline, told);
  if (failure_.ok() && !complete()) Fail(WhyStuck());
  if (!in_time)
    Fail(absl::DeadlineExceededError(
        absl::StrCat(names_[WaitsFor()], " hasn't come to operation ", number_, " of the group in time")));
  flow_ = nullptr;
  if (told) TellWaitEnded(failure_);
  if (!failure_.ok()) End(failure_);
  return failure_;
}

bool RingCollective::AwaitEnd(absl::FunctionRef<bool()> over, absl::Time deadline, bool& told) {
  const absl::Time began = loop_.Now();
  if (loop_.RunUntil(over, std::min(deadline, began + kWorthAWord))) return true;
  bool in_time = false;
  for (absl::Time now = began + kWorthAWord; !in_time && now < deadline; now = loop_.Now()) {
    TellWait(names_[WaitsFor()], now - began);
    told = true;
    in_time = loop_.RunUntil(over, std::min(deadline, now + kBetweenWords));
  }
  return in_time;
}

absl::Status RingCollective::WhyStuck() const {
  if (!HasAll()) RETURN_IF_ERROR(before_gone_);
  return HasServedAll() ? absl::OkStatus() : after_gone_;
}

void RingCollective::AskForMore() {
  const size_t all = flow_->receives ? flow_->stages * flow_->pieces : 0;
  while (failure_.ok() && asked_ < all && asked_ < received_ + kAskedAhead) {
    const PieceRequest request{number_, asked_ / flow_->pieces, asked_ % flow_->pieces, flow_->call};
    ++asked_;
    channel_->Call({.method = static_cast<uint16_t>(RingMethod::kPiece),
                    .control = Encode(request),
                    .into = flow_->target(request.stage, request.piece)},
                   [this, request](absl::StatusOr<Reply> reply) {
                     // The reply belongs to an operation that has failed: nobody needs it any more.
                     if (!failure_.ok() || flow_ == nullptr || request.number != number_) return;
                     if (!reply.ok()) {
                       // If the connection broke, the watch says more.
                       if (absl::IsInvalidArgument(reply.status())) Fail(reply.status());
                       return;
                     }
                     flow_->received(request.stage, request.piece);
                     ready_[request.stage + flow_->hop][request.piece] = true;
                     ++received_;
                     AskForMore();
                     ServeWaiting();
                   });
  }
}

void RingCollective::Serve(const PieceRequest& request, Responder responder) {
  if (failure_.ok() && request.number == number_ && flow_ != nullptr && request.call != flow_->call) {
    const absl::Status why =
        absl::InvalidArgumentError(DescribeDifference(names_[rank_], flow_->call, names_[after()], request.call));
    responder.Fail(why);
    return Fail(why);
  }
  const bool now = failure_.ok() && flow_ != nullptr && request.number == number_ && request.stage < flow_->stages &&
                   request.piece < flow_->pieces && ready_[request.stage][request.piece];
  if (!now) return waiting_.push_back({request, std::move(responder)});
  ++served_;
  responder.Send("", flow_->source(request.stage, request.piece), in_use_);
}

void RingCollective::ServeWaiting() {
  std::vector<Waiting> waiting = std::exchange(waiting_, {});
  for (Waiting& one : waiting) Serve(one.request, std::move(one.responder));
}

void RingCollective::Watch() {
  channel_ = transport_.Connect(address_before_);
  channel_->Call({.method = static_cast<uint16_t>(RingMethod::kWatch)}, [this](absl::StatusOr<Reply> reply) {
    before_gone_ =
        reply.ok()
            ? DecodeEnd(reply->control)
            : absl::UnavailableError(absl::StrCat(names_[before()], " has died, or failed, in the middle of training (",
                                                  reply.status().message(), ")"));
  });
}

absl::StatusOr<std::unique_ptr<BulkTarget>> RingCollective::PrepareBulk(const IncomingRequest&) {
  return absl::InvalidArgumentError("ring ranks request pieces; they don't receive unrequested ones");
}

void RingCollective::Handle(IncomingRequest& request, std::unique_ptr<BulkTarget>, Responder responder) {
  PieceRequest piece;
  switch (static_cast<RingMethod>(request.method)) {
    case RingMethod::kWatch:
      if (ended_) return responder.Send(Encode(*ended_));
      watched_by_ = request.connection;
      watcher_ = std::move(responder);
      return;
    case RingMethod::kPiece:
      if (!Decode(request.control, piece)) return responder.Fail(absl::InvalidArgumentError("not a piece's request"));
      return Serve(piece, std::move(responder));
    case RingMethod::kEnd:
      responder.Send("");
      if (watched_by_ == request.connection) after_gone_ = DecodeEnd(request.control);
      return;
  }
  // A process takes this address for the rendezvous: a rank that was restarted after dying, perhaps before its
  // neighbours had heard of it, or a rank that was started twice by mistake. This rank can't tell which.
  if (EnterRequest enter; request.method == static_cast<uint16_t>(RendezvousMethod::kEnter) &&
                          Decode(request.control, enter) && enter.rank < names_.size() && enter.size == names_.size())
    Fail(absl::UnavailableError(absl::StrCat("another process has come as ", names_[enter.rank],
                                             ": it has died and was started again, or was started twice")));
  responder.Fail(absl::UnavailableError("the group is at work already"));
}

void RingCollective::OnDisconnect(ConnectionId connection) {
  if (!watched_by_ || *watched_by_ != connection || !after_gone_.ok()) return;
  after_gone_ =
      absl::UnavailableError(absl::StrCat(names_[after()], " has died, or failed, in the middle of training"));
}

void RingCollective::Fail(absl::Status why) {
  if (failure_.ok()) failure_ = std::move(why);
}

void RingCollective::End(const absl::Status& why) {
  ended_ = why;
  bool told = false;
  channel_->Call({.method = static_cast<uint16_t>(RingMethod::kEnd), .control = Encode(why)},
                 [&told](const absl::StatusOr<Reply>&) { told = true; });
  if (watcher_) std::exchange(watcher_, std::nullopt)->Send(Encode(why));
  for (Waiting& one : std::exchange(waiting_, {})) one.responder.Fail(why);
  // The next rank has heard it when it says the same, or has gone.
  loop_.RunUntil([&] { return told && !after_gone_.ok(); }, loop_.Now() + kToldWithin);
  channel_.reset();
  waiting_.clear();
  // Stops replies in progress: their bytes are the caller's again.
  listener_.reset();
}

void RingCollective::Leave() {
  if (!failure_.ok()) return;
  failure_ = absl::FailedPreconditionError("this rank has left the group");
  End(absl::CancelledError(absl::StrCat(names_[rank_], " has ended its training")));
}

}  // namespace muster
