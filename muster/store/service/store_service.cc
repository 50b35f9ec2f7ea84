#include "muster/store/service/store_service.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/net/this_host.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/store/arena/arena_locks.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/service/store_status.h"

namespace muster {
namespace {

constexpr size_t kMostOfReason = 200;  // of the words by which a shutdown is asked for

// Cancelled if a client would wait for a model that nobody will bring.
absl::Status NeedChief(const Arena* arena, const ClientTable& clients) {
  if (arena != nullptr || !clients.chief_done()) return absl::OkStatus();
  return absl::CancelledError("training has ended: the chief was done before there was a model");
}

absl::Status UnknownMethod(StoreMethod method) {
  return absl::UnimplementedError(absl::StrCat("this ps knows no method ", static_cast<int>(method),
                                               "; client and ps must be of the same version"));
}

std::string HowAllEnded(const ClientTable& clients) {
  const std::vector<std::string> others = clients.NotDone();
  return absl::StrCat("every task is done", others.empty() ? "" : ", but for ", absl::StrJoin(others, ", "));
}

}  // namespace

StoreService::StoreService(EventLoop& loop, StoreOptions options)
    : ps_(loop, std::move(options)),
      started_(loop.Now()),
      memory_(ps_.options.memory),
      gates_(loop, ps_.clients, ps_.options.lead, ps_.options.probe,
             [this](const HeldPull& pull, const PushPullReply& reply, Responder responder) {
               pushes_.Answer(pull, reply, std::move(responder));
             }),
      queues_(loop, {ps_.options.task, ps_.options.queue_bytes}),
      work_(ps_.options.work, ps_.clients),
      access_(ps_.options.port),
      part_saver_(loop, *ps_.options.files, ps_.options.background, ps_.options.model_dir),
      cut_(loop, ps_.clients, gates_, part_saver_,
           {ps_.options.lead, ps_.options.probe, [this](Arena& arena) { return work_.Save(arena); }},
           [this](IncomingRequest request, std::unique_ptr<BulkTarget> bulk, Responder responder) {
             Handle(request, std::move(bulk), std::move(responder));
           }),
      checkpoints_(ps_, cut_, part_saver_),
      pushes_(ps_, gates_, cut_, checkpoints_, buffers_),
      cut_off_(loop, ps_.clients, cut_,
               {.task = ps_.options.task,
                .supervisor_count = ps_.options.supervisor_count,
                .arena = [this] { return ps_.arena; }}),
      listener_stats_([] { return Listener::Stats(); }) {}

StoreService::~StoreService() {
  if (end_timer_) ps_.loop.CancelTimer(*end_timer_);
}

absl::Status StoreService::Recover() {
  if (memory_ == nullptr || memory_->size() == 0) return absl::OkStatus();
  const int num_clients = static_cast<int>(ps_.clients.clients().size());
  auto attached = Arena::Attach(memory_, num_clients, ps_.options.probe);
  if (absl::IsNotFound(attached.status())) return absl::OkStatus();
  RETURN_IF_ERROR(attached.status());
  ps_.arena = *std::move(attached);
  Arena::Locks(*ps_.arena).TakeOver();
  { const Arena::CountLock finishes_what_was_begun(*ps_.arena); }
  const bool forget = ps_.options.probe != nullptr && ps_.options.probe->Has(PlantedBug::kForgetClients);
  for (int i = 0; i < ps_.arena->layout().num_writers(); ++i) ps_.arena->RecoverWriter(i);
  for (int i = 0; i < num_clients; ++i) {
    ClientRecord& record = ps_.arena->client(i);
    if (record.task != ps_.clients.client(i).task)
      return absl::FailedPreconditionError(
          absl::StrCat("the memory that ", ps_.options.task, " was given belongs to another job, with a worker ",
                       record.task, " where this one has ", ps_.clients.client(i).task));
    if (forget) record.numbers.last_applied = record.numbers.last_counted = 0;
    if (record.incarnation != 0) ps_.clients.Restore(i, record.incarnation, record.where, record.done != 0, started_);
  }
  const ChiefLease& chief = ps_.arena->header().chief;
  if (chief.client >= 0) ps_.clients.RestoreChief(static_cast<int>(chief.client), chief.epoch, chief.incarnation);
  gates_.Attach(*ps_.arena);
  ps_.arena->header().load_requested = 0;  // the client that asked has lost its connection
  cut_.Recover(*ps_.arena);
  work_.Recover(*ps_.arena);
  LogInfo("found the model of an earlier life: ", ps_.arena->layout().value_bytes(), " bytes, version ",
          ps_.arena->header().counters.updates,
          ps_.options.lead ? absl::StrCat(", global step ", ps_.arena->header().counters.global_step) : "");
  if (ps_.arena->header().ended != 0) {
    End(absl::OkStatus(), "it had ended before this ps was restarted");
  } else {
    CheckEnd();
  }
  return absl::OkStatus();
}

void StoreService::OnConnect(ConnectionId connection, const std::string& peer) {
  if (IsThisHost(peer)) ps_.clients.NoteOnThisHost(connection);
}

void StoreService::OnDisconnect(ConnectionId connection) {
  gates_.OnTurn();
  ps_.clients.Disconnect(connection, ps_.loop.Now());
  // A client that waited on this connection asks again when it is back.
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.connection != connection) return false;
    ps_.clients.client(waiter.client).waiting_for.clear();
    return true;
  });
  gates_.Disconnect(connection);
  queues_.Disconnect(connection);
  cut_.Disconnect(connection);
  CheckEnd();
}

absl::StatusOr<std::unique_ptr<BulkTarget>> StoreService::PrepareBulk(const IncomingRequest& request) {
  gates_.OnTurn();
  std::unique_ptr<DecodedRequest> target = bulks_.Take();
  RETURN_IF_ERROR(target->Decode(request));
  switch (static_cast<StoreMethod>(request.method)) {
    case StoreMethod::kPushPull:
      RETURN_IF_ERROR(pushes_.Check(request.connection, target->Get<PushPullRequest>(), request.bulk_bytes));
      if (!request.in_shared_memory) break;
      target->StaysInSharedMemory();
      return target;
    case StoreMethod::kInitialize: {
      const InitializeRequest& message = target->Get<InitializeRequest>();
      RETURN_IF_ERROR(ps_.HearChief(request.connection, message.stamp, message.chief_epoch));
      RETURN_IF_ERROR(ValidateModel(message.model));
      const uint64_t expected =
          ValueBytes(message.model, message.with_rows) + (message.with_slots ? SlotBytes(message.model) : 0);
      if (request.bulk_bytes != expected)
        return absl::InvalidArgumentError(
            absl::StrCat("initialisation of ", expected, " bytes came with ", request.bulk_bytes));
      break;
    }
    case StoreMethod::kGatherRows:
    case StoreMethod::kPushRows:
      RETURN_IF_ERROR(pushes_.Check(static_cast<StoreMethod>(request.method), request.connection,
                                    target->Get<RowsRequest>(), request.bulk_bytes));
      break;
    case StoreMethod::kEnqueue:
      RETURN_IF_ERROR(queues_.CheckElement(target->Get<QueueRequest>(), request.bulk_bytes));
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat("method ", StoreMethodName(request.method), " takes no bulk, but ",
                                                     request.bulk_bytes, " bytes came"));
  }
  target->Receive(buffers_.Take(request.bulk_bytes), request.bulk_bytes);
  return target;
}

void StoreService::Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) {
  gates_.OnTurn();
  if (cut_.IsHeld(request)) return cut_.KeepBack(std::move(request), std::move(bulk), std::move(responder));
  ++requests_[request.method < kStoreMethods ? request.method : 0];
  auto* decoded = static_cast<DecodedRequest*>(bulk.get());
  if (decoded == nullptr) {
    std::unique_ptr<DecodedRequest> none = bulks_.Take();
    decoded = none.get();
    bulk = std::move(none);
    if (absl::Status status = decoded->Decode(request); !status.ok()) return responder.Fail(std::move(status));
  }
  Dispatch(request, *decoded, std::move(responder));
  bulks_.Reuse(std::move(bulk));
}

template <typename Message>
auto& StoreService::HandlerOf() {
  if constexpr (requires(Message message, IncomingCall call) { pushes_.On(message, call); }) {
    return pushes_;
  } else if constexpr (requires(Message message, IncomingCall call) { checkpoints_.On(message, call); }) {
    return checkpoints_;
  } else {
    return *this;
  }
}

template <typename Message>
void StoreService::Answer(const IncomingRequest& request, const DecodedRequest& decoded, IncomingCall call) {
  absl::Status status;
  if constexpr (DecodedRequest::kHas<Message>) {
    status = HandlerOf<Message>().On(decoded.Get<Message>(), call);
  } else {
    Message message;
    status = Decode(request.control, message);
    if (status.ok()) status = HandlerOf<Message>().On(std::move(message), call);
  }
  if (!status.ok()) call.responder.Fail(std::move(status));
}

void StoreService::Dispatch(const IncomingRequest& request, const DecodedRequest& decoded, Responder responder) {
  IncomingCall call{static_cast<StoreMethod>(request.method), request.connection, decoded.bytes(),
                    std::move(responder)};
  switch (call.method) {
#define MUSTER_ANSWER(number, method, name, Request, Reply) \
  case StoreMethod::method:                                 \
    return Answer<Request>(request, decoded, std::move(call));
    MUSTER_STORE_METHODS(MUSTER_ANSWER)
#undef MUSTER_ANSWER
  }
  call.responder.Fail(UnknownMethod(call.method));
}

absl::Status StoreService::On(const StatusRequest&, IncomingCall& call) {
  call.responder.Send(StatusJson(MakeView()));
  return absl::OkStatus();
}

absl::Status StoreService::On(const ClockRequest&, IncomingCall& call) {
  if (ps_.options.track == nullptr) return UnknownMethod(call.method);
  call.responder.Send(Encode(ClockReply{ps_.options.track->Nanos()}));
  return absl::OkStatus();
}

absl::Status StoreService::On(const JoinRequest& message, IncomingCall& call) {
  JoinReply reply{.ready = ps_.arena != nullptr,
                  .ended = !ps_.ending.empty(),
                  .ps_incarnation = ps_.options.incarnation,
                  .generation = ps_.arena ? ps_.arena->header().generation : 0};
  if (reply.ended) {
    call.responder.Send(Encode(reply));
    return absl::OkStatus();
  }
  const absl::Time now = ps_.loop.Now();
  ASSIGN_OR_RETURN(const int client, ps_.clients.Join(message, call.connection, now));
  reply.client = client;
  gates_.Replace(client, message.incarnation);
  if (message.chief) {
    ASSIGN_OR_RETURN(reply.chief_epoch, ps_.clients.ClaimChief(client, now));
  }
  if (ps_.arena) {
    const bool new_life = ps_.arena->client(client).incarnation != message.incarnation;
    if (new_life) {
      RETURN_IF_ERROR(access_.Evict(*ps_.arena, client));
      gates_.Join(client);
    }
    // The number of an unfinished push counts: a new life that used it again would find stripes that skip it.
    reply.last_sequence = ps_.arena->HighestSequences()[client];
    if (new_life) cut_.ForgetBegun(*ps_.arena, client, reply.last_sequence);
    // Last: a ps that dies before it finds a new life when this one joins again.
    RecordClient(client);
    Publish<uint64_t>(ps_.arena->client(client).fenced, 0);
    if (message.chief) RecordChief();
    reply.global_step = Observe(ps_.arena->header().counters.global_step);
  }
  if (!ps_.options.one_process)
    LogInfo(message.task, " joined (", ps_.clients.client(client).where, ")", message.chief ? ", it is the chief" : "");
  call.responder.Send(Encode(reply));
  CheckEnd();
  return absl::OkStatus();
}

void StoreService::RecordClient(int index) {
  const ClientTable::Client& client = ps_.clients.client(index);
  ClientRecord& record = ps_.arena->client(index);
  std::strncpy(record.task, client.task.c_str(), sizeof record.task - 1);
  std::strncpy(record.where, client.where.c_str(), sizeof record.where - 1);
  record.done = client.done ? 1 : 0;
  record.incarnation = client.incarnation;
}

void StoreService::RecordChief() {
  ChiefLease& lease = ps_.arena->header().chief;
  std::atomic_ref(lease.client).store(-1, std::memory_order_release);
  lease.epoch = ps_.clients.chief_epoch();
  lease.incarnation = ps_.clients.chief_incarnation();
  std::atomic_ref(lease.client).store(ps_.clients.chief(), std::memory_order_release);
}

absl::Status StoreService::Initialize(ConnectionId connection, const InitializeRequest& message, ByteSpan bulk) {
  RETURN_IF_ERROR(ps_.HearChief(connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(ps_.NeedTraining());
  if (message.generation == 0) return absl::InvalidArgumentError("an initialisation has a generation from 1 on");
  if (ps_.arena) {
    // The answer to the first was lost; training may have begun meanwhile.
    if (message.generation == ps_.arena->header().generation) return absl::OkStatus();
    if (message.generation < ps_.arena->header().generation)
      return absl::FailedPreconditionError(absl::StrCat(ps_.options.task, " holds values of generation ",
                                                        ps_.arena->header().generation, ", which are newer than ",
                                                        message.generation));
    RETURN_IF_ERROR(CompareModels(ps_.arena->model(), message.model, ps_.clients.client(message.stamp.client).task));
  }
  RETURN_IF_ERROR(ValidateModel(message.model));
  const uint64_t value_bytes = ValueBytes(message.model, message.with_rows);
  if (bulk.size() != value_bytes + (message.with_slots ? SlotBytes(message.model) : 0))
    return absl::InvalidArgumentError("the initialisation's values do not fit its model");
  if (message.with_slots && message.steps.size() != static_cast<size_t>(NumStripes(message.model)))
    return absl::InvalidArgumentError("the initialisation's step counters do not fit its model");
  const int num_clients = static_cast<int>(ps_.clients.clients().size());
  if (!ps_.arena) {
    ASSIGN_OR_RETURN(ps_.arena, Arena::Create(message.model, num_clients, memory_, ps_.options.probe));
    ps_.arena->header().one_process = ps_.options.one_process ? 1 : 0;
  }
  for (int i = 0; i < num_clients; ++i) RecordClient(i);
  RecordChief();
  ASSIGN_OR_RETURN(const std::string work, work_.Load(*ps_.arena, message.work));
  pushes_.SetKnownStep(message.global_step);
  cut_.Release();
  const std::vector<uint64_t> highest = ps_.arena->HighestSequences();
  for (int i = 0; i < num_clients; ++i) cut_.ForgetBegun(*ps_.arena, i, highest[i]);
  ps_.arena->Load({.generation = message.generation,
                   .global_step = message.global_step,
                   .minibatches = message.minibatches,
                   .values = bulk.first(value_bytes),
                   .slots = bulk.subspan(value_bytes),
                   .steps = message.with_slots ? std::span<const uint64_t>(message.steps) : std::span<const uint64_t>(),
                   .with_rows = message.with_rows,
                   .work = work});
  gates_.Attach(*ps_.arena);
  cut_off_.OnModel();
  return absl::OkStatus();
}

absl::Status StoreService::On(const InitializeRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(Initialize(call.connection, message, call.bulk));
  const std::string& by = ps_.clients.client(message.stamp.client).task;
  LogInfo(ps_.options.one_process ? "the model is in this process" : absl::StrCat("initialised by ", by), ": ",
          ps_.arena->layout().value_bytes(), " bytes in ", message.model.slices.size(),
          message.model.slices.size() == 1 ? " slice" : " slices",
          ps_.options.lead ? absl::StrCat(", global step ", message.global_step) : "");
  call.responder.Send({});
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    if (ReadyFor(waiter.request)) {
      AnswerReady(waiter.client, waiter.request, std::move(waiter.responder));
    } else {
      waiters_.push_back(std::move(waiter));
    }
  }
  return absl::OkStatus();
}

absl::Status StoreService::On(AwaitReadyRequest message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  RETURN_IF_ERROR(ValidateModel(message.model));
  RETURN_IF_ERROR(ps_.NeedTraining());
  const int client = message.stamp.client;
  if (ReadyFor(message)) {
    AnswerReady(client, message, std::move(call.responder));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(NeedChief(ps_.arena.get(), ps_.clients));
  ps_.clients.client(client).waiting_for =
      ps_.arena ? "the chief to load a checkpoint" : "the chief to initialise the model";
  waiters_.push_back({call.connection, client, std::move(message), std::move(call.responder)});
  return absl::OkStatus();
}

bool StoreService::ReadyFor(const AwaitReadyRequest& request) const {
  return ps_.arena && ps_.arena->header().generation >= request.generation;
}

void StoreService::AnswerReady(int client, const AwaitReadyRequest& request, Responder responder) {
  ps_.clients.client(client).waiting_for.clear();
  if (absl::Status status = CompareModels(ps_.arena->model(), request.model, ps_.clients.client(client).task);
      !status.ok())
    return responder.Fail(std::move(status));
  responder.Send(
      Encode(AwaitReadyReply{Observe(ps_.arena->header().counters.global_step), ps_.arena->header().generation}));
}

absl::Status StoreService::On(const HeartbeatRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  ps_.clients.TakeBeat(message, ps_.loop.Now());
  call.responder.Send({});
  gates_.Recheck();  // a client that was lost may be there again
  return absl::OkStatus();
}

absl::Status StoreService::On(const DoneRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  ps_.clients.SetDone(message.stamp.client, ps_.loop.Now());
  if (ps_.arena) RecordClient(static_cast<int>(message.stamp.client));
  if (ps_.arena) DirectAccess::Leave(*ps_.arena, static_cast<int>(message.stamp.client));
  call.responder.Send({});
  LogInfo(ps_.clients.client(message.stamp.client).task, " is done");
  if (const absl::Status left = NeedChief(ps_.arena.get(), ps_.clients); !left.ok())
    for (Waiter& waiter : std::exchange(waiters_, {})) waiter.responder.Fail(left);
  const auto waited_for = ps_.clients.WaitedFor(ps_.loop.Now());
  if (ps_.clients.chief_done() && !waited_for.empty()) LogInfo("the end waits for ", absl::StrJoin(waited_for, ", "));
  CheckEnd();
  return absl::OkStatus();
}

absl::Status StoreService::On(const BarrierRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  RETURN_IF_ERROR(ps_.NeedTraining());
  gates_.OnBarrier(call.connection, message, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const ShutdownRequest& message, IncomingCall& call) {
  call.responder.Send({});
  Shutdown(OneLine(message.reason, kMostOfReason));
  return absl::OkStatus();
}

absl::Status StoreService::On(const OpenDirectRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  RETURN_IF_ERROR(ps_.NeedModel());
  const int client = static_cast<int>(message.stamp.client);
  ASSIGN_OR_RETURN(const OpenDirectReply reply,
                   access_.Open(*ps_.arena, client, ps_.clients.client(client).incarnation));
  call.responder.Send(Encode(reply));
  return absl::OkStatus();
}

absl::Status StoreService::On(const EnterDirectRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  RETURN_IF_ERROR(ps_.NeedModel());
  RETURN_IF_ERROR(ps_.NeedTraining());
  const absl::Status entered = access_.Enter(*ps_.arena, static_cast<int>(message.stamp.client), message.ticket);
  gates_.Recheck();
  if (entered.ok()) call.responder.Send({});
  return entered;
}

absl::Status StoreService::On(const AwaitTurnRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  RETURN_IF_ERROR(ps_.NeedTraining());
  RETURN_IF_ERROR(ps_.NeedModel());
  RETURN_IF_ERROR(ps_.CheckGeneration(message.generation));
  if (!ps_.arena->model().ordered) return absl::InvalidArgumentError("await_turn on a model that isn't ordered");
  gates_.OnAwaitTurn(call.connection, message, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const OpenQueueRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.NeedTraining());
  queues_.Open(call.connection, message, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const QueueRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.NeedTraining());
  queues_.Handle(call.method, call.connection, message, call.bulk, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const TakeWorkRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.NeedLead());
  RETURN_IF_ERROR(ps_.NeedTraining());
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  ASSIGN_OR_RETURN(const TakeWorkReply reply, work_.Take(message, ps_.arena.get(), ps_.loop.Now()));
  call.responder.Send(Encode(reply));
  return absl::OkStatus();
}

absl::Status StoreService::On(const GiveUpWorkRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(ps_.NeedLead());
  RETURN_IF_ERROR(ps_.Hear(call.connection, message.stamp));
  // Without a model nobody has anything.
  if (ps_.arena) work_.GiveUp(message, *ps_.arena);
  call.responder.Send({});
  return absl::OkStatus();
}

void StoreService::CheckEndAt(absl::Time when) {
  if (end_timer_) ps_.loop.CancelTimer(*end_timer_);
  end_timer_.reset();
  if (when == absl::InfiniteFuture()) return;
  end_timer_ = ps_.loop.CallAt(when, [this] {
    end_timer_.reset();
    CheckEnd();
  });
}

void StoreService::CheckEnd() {
  if (!ps_.ending.empty()) return CheckLeaving();
  gates_.Recheck();
  const absl::Time now = ps_.loop.Now();
  switch (ps_.clients.PhaseAt(now)) {
    case ClientTable::Phase::kEnded:
      return End(absl::OkStatus(), HowAllEnded(ps_.clients));
    case ClientTable::Phase::kAbandoned:
      return End(absl::UnavailableError("every worker has left without finishing"), "abandoned");
    case ClientTable::Phase::kTraining:
      break;
  }
  CheckEndAt(ps_.clients.NextChange(now));
}

// Training has ended: when the last has left, or the grace is over, the linger begins.
void StoreService::CheckLeaving() {
  if (lingering_) return;
  const absl::Time now = ps_.loop.Now();
  const absl::Time give_up = ended_at_ + ps_.options.shutdown_grace;
  const absl::Time last_leaves = ps_.clients.LastLeaves(now);
  if (last_leaves > now && now < give_up) return CheckEndAt(std::min(last_leaves, give_up));
  lingering_ = true;
  Linger(was_shut_down_ ? std::min(ps_.options.linger, kUsualLinger) : ps_.options.linger);
}

void StoreService::Linger(absl::Duration linger) {
  if (end_timer_) ps_.loop.CancelTimer(*end_timer_);
  end_timer_ = ps_.loop.CallAt(ps_.loop.Now() + linger, [this] {
    end_timer_.reset();
    AnswerKept();
    part_saver_.FailAll(absl::UnavailableError("this ps has ended: it waits for nobody any longer"));
    finished_ = true;
  });
}

void StoreService::AnswerKept() {
  const absl::Status ended = absl::CancelledError(absl::StrCat("training has ended: ", ps_.ending));
  for (Waiter& waiter : std::exchange(waiters_, {})) waiter.responder.Fail(ended);
  gates_.FailAll(ended);
  queues_.FailAll(ended);
  checkpoints_.FailLoad(ended);
}

void StoreService::Shutdown(const std::string& reason) {
  was_shut_down_ = true;
  if (ps_.ending.empty()) return End(absl::OkStatus(), absl::StrCat("shut down: ", reason));
  if (lingering_ && !finished_ && ps_.options.linger > kUsualLinger) Linger(kUsualLinger);
}

bool StoreService::IsInUse() const {
  const absl::Time now = ps_.loop.Now();
  const std::vector<ClientTable::Client>& clients = ps_.clients.clients();
  return ps_.ending.empty() && std::any_of(clients.begin(), clients.end(), [&](const ClientTable::Client& client) {
           return !client.connections.empty() && ps_.clients.Present(client, now);
         });
}

void StoreService::End(absl::Status outcome, const std::string& why) {
  LogInfo("training has ended: ", why);
  ps_.ending = why;
  if (ps_.arena) ps_.arena->header().ended = 1;
  outcome_ = std::move(outcome);
  // First: a round that fires only now that no cut holds it is answered with what it made.
  cut_.End();
  AnswerKept();
  ended_at_ = ps_.loop.Now();
  CheckLeaving();
}

StoreService::View StoreService::MakeView() const {
  std::vector<WaitingFor> waiting = gates_.Describe();
  queues_.Describe(ps_.clients, waiting);
  return {.options = &ps_.options,
          .now = ps_.loop.Now(),
          .started = started_,
          .arena = ps_.arena.get(),
          .clients = &ps_.clients,
          .waiting = std::move(waiting),
          .who_waits = gates_.WhoWaits(),
          .queues = queues_.Describe(),
          .work = work_.Describe(),
          .ending = ps_.ending,
          .requests = requests_,
          .staleness = pushes_.Staleness(),
          .rows = pushes_.rows(),
          .listener = listener_stats_()};
}

}  // namespace muster
