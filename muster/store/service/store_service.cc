#include "muster/store/service/store_service.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/service/store_status.h"

namespace muster {
namespace {

// For whoever waits for a model that nobody will bring.
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
    : loop_(loop),
      options_(std::move(options)),
      started_(loop.Now()),
      clients_(options_.workers, options_.lease),
      memory_(options_.memory),
      gates_(loop, clients_, options_.lead, options_.probe,
             [this](const HeldPull& pull, const PushPullReply& reply, Responder responder) {
               AnswerPush(pull, reply, std::move(responder));
             }),
      queues_(loop, {options_.task, options_.queue_bytes}),
      work_(options_.work, clients_),
      door_(options_.port),
      part_saver_(loop, *options_.files, options_.background),
      hold_(loop, clients_, gates_, part_saver_,
            {options_.lead, options_.probe, [this](Arena& arena) { return work_.Save(arena); }},
            [this](IncomingRequest request, std::unique_ptr<BulkTarget> bulk, Responder responder) {
              Handle(request, std::move(bulk), std::move(responder));
            }),
      staleness_(kStalenessCounts),
      listener_stats_([] { return Listener::Stats(); }) {}

StoreService::~StoreService() {
  if (end_timer_) loop_.CancelTimer(*end_timer_);
}

absl::Status StoreService::Recover() {
  if (memory_ == nullptr || memory_->size() == 0) return absl::OkStatus();
  const int num_clients = static_cast<int>(clients_.clients().size());
  auto attached = Arena::Attach(memory_, num_clients, options_.probe);
  if (absl::IsNotFound(attached.status())) return absl::OkStatus();
  RETURN_IF_ERROR(attached.status());
  arena_ = *std::move(attached);
  { const Arena::CountLock finishes_what_was_begun(*arena_); }
  const bool forget = options_.probe != nullptr && options_.probe->Has(PlantedBug::kForgetClients);
  for (int i = 0; i < arena_->layout().num_writers(); ++i) arena_->RecoverWriter(i);
  for (int i = 0; i < num_clients; ++i) {
    ClientRecord& record = arena_->client(i);
    if (record.task != clients_.client(i).task)
      return absl::FailedPreconditionError(absl::StrCat("the memory that ", options_.task,
                                                        " was given belongs to another job, with a worker ",
                                                        record.task, " where this one has ", clients_.client(i).task));
    if (forget) record.numbers.last_applied = record.numbers.last_counted = 0;
    if (record.incarnation != 0) clients_.Restore(i, record.incarnation, record.where, record.done != 0, started_);
  }
  const ChiefLease& chief = arena_->header().chief;
  if (chief.client >= 0) clients_.RestoreChief(static_cast<int>(chief.client), chief.epoch, chief.incarnation);
  gates_.Attach(*arena_);
  arena_->header().load_requested = 0;  // who asked has lost his connection
  hold_.Recover(*arena_);
  work_.Recover(*arena_);
  LogInfo("found the model of an earlier life: ", arena_->layout().value_bytes(), " bytes, version ",
          arena_->header().counters.updates,
          options_.lead ? absl::StrCat(", global step ", arena_->header().counters.global_step) : "");
  if (arena_->header().ended != 0) {
    End(absl::OkStatus(), "it had ended before this ps was restarted");
  } else {
    LookAtEnd();
  }
  return absl::OkStatus();
}

void StoreService::OnConnect(ConnectionId, const std::string&) {}

void StoreService::OnDisconnect(ConnectionId connection) {
  clients_.Disconnect(connection, loop_.Now());
  // Who waited on it asks again when it is back.
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (waiter.connection != connection) return false;
    clients_.client(waiter.client).waiting_for.clear();
    return true;
  });
  gates_.Disconnect(connection);
  queues_.Disconnect(connection);
  hold_.Disconnect(connection);
  LookAtEnd();
}

absl::Status StoreService::NeedModel() const {
  if (arena_) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      options_.task, " has no model: the chief has not initialised it, or it was restarted and has lost it"));
}

absl::Status StoreService::NeedTraining() const {
  return ending_.empty() ? absl::OkStatus() : absl::CancelledError(absl::StrCat("training has ended: ", ending_));
}

absl::StatusOr<std::unique_ptr<BulkTarget>> StoreService::PrepareBulk(const IncomingRequest& request) {
  std::unique_ptr<DecodedRequest> target = bulks_.Take();
  RETURN_IF_ERROR(target->Decode(request));
  switch (static_cast<StoreMethod>(request.method)) {
    case StoreMethod::kPushPull:
      RETURN_IF_ERROR(CheckPushPull(request.connection, target->Get<PushPullRequest>(), request.bulk_bytes));
      if (!request.in_shared_memory) break;
      target->StaysInSharedMemory();
      return target;
    case StoreMethod::kInitialize: {
      const InitializeRequest& message = target->Get<InitializeRequest>();
      RETURN_IF_ERROR(HearChief(request.connection, message.stamp, message.chief_epoch));
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
      RETURN_IF_ERROR(CheckRows(static_cast<StoreMethod>(request.method), request.connection,
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
  if (hold_.Keeps(request)) return hold_.Keep(std::move(request), std::move(bulk), std::move(responder));
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

template <typename Message>
void StoreService::Answer(const IncomingRequest& request, const DecodedRequest& decoded, IncomingCall call) {
  absl::Status status;
  if constexpr (DecodedRequest::kHas<Message>) {
    status = On(decoded.Get<Message>(), call);
  } else {
    Message message;
    status = Decode(request.control, message);
    if (status.ok()) status = On(std::move(message), call);
  }
  if (!status.ok()) call.responder.Fail(std::move(status));
}

absl::Status StoreService::On(const StatusRequest&, IncomingCall& call) {
  call.responder.Send(StatusJson(MakeView()));
  return absl::OkStatus();
}

absl::Status StoreService::On(const ClockRequest&, IncomingCall& call) {
  if (options_.track == nullptr) return UnknownMethod(call.method);
  call.responder.Send(Encode(ClockReply{options_.track->Nanos()}));
  return absl::OkStatus();
}

absl::Status StoreService::On(const JoinRequest& message, IncomingCall& call) {
  JoinReply reply{.ready = arena_ != nullptr,
                  .ended = !ending_.empty(),
                  .ps_incarnation = options_.incarnation,
                  .generation = arena_ ? arena_->header().generation : 0};
  if (reply.ended) {
    call.responder.Send(Encode(reply));
    return absl::OkStatus();
  }
  const absl::Time now = loop_.Now();
  ASSIGN_OR_RETURN(const int client, clients_.Join(message, call.connection, now));
  reply.client = client;
  gates_.Replace(client, message.incarnation);
  if (message.chief) {
    ASSIGN_OR_RETURN(reply.chief_epoch, clients_.ClaimChief(client, now));
  }
  if (arena_) {
    const bool new_life = arena_->client(client).incarnation != message.incarnation;
    if (new_life) {
      RETURN_IF_ERROR(door_.Vacate(*arena_, client));
      gates_.Join(client);
    }
    // Of an unfinished push too: a new life that used its number again would find stripes that skip it.
    reply.last_sequence = arena_->HighestSequences()[client];
    if (new_life) hold_.Settle(*arena_, client, reply.last_sequence);
    // Last: a ps that dies before it finds a new life when this one joins again.
    RecordClient(client);
    if (message.chief) RecordChief();
    reply.global_step = Observe(arena_->header().counters.global_step);
  }
  if (!options_.one_process)
    LogInfo(message.task, " joined (", message.where, ")", message.chief ? ", it is the chief" : "");
  call.responder.Send(Encode(reply));
  LookAtEnd();
  return absl::OkStatus();
}

void StoreService::RecordClient(int index) {
  const ClientTable::Client& client = clients_.client(index);
  ClientRecord& record = arena_->client(index);
  std::strncpy(record.task, client.task.c_str(), sizeof record.task - 1);
  std::strncpy(record.where, client.where.c_str(), sizeof record.where - 1);
  record.done = client.done ? 1 : 0;
  record.incarnation = client.incarnation;
}

void StoreService::RecordChief() {
  ChiefLease& lease = arena_->header().chief;
  std::atomic_ref(lease.client).store(-1, std::memory_order_release);
  lease.epoch = clients_.chief_epoch();
  lease.incarnation = clients_.chief_incarnation();
  std::atomic_ref(lease.client).store(clients_.chief(), std::memory_order_release);
}

absl::Status StoreService::Initialize(ConnectionId connection, const InitializeRequest& message, ByteSpan bulk) {
  RETURN_IF_ERROR(HearChief(connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(NeedTraining());
  if (message.generation == 0) return absl::InvalidArgumentError("an initialisation has a generation from 1 on");
  if (arena_) {
    // The answer to the first was lost; training may have begun meanwhile.
    if (message.generation == arena_->header().generation) return absl::OkStatus();
    if (message.generation < arena_->header().generation)
      return absl::FailedPreconditionError(absl::StrCat(options_.task, " holds values of generation ",
                                                        arena_->header().generation, ", which are newer than ",
                                                        message.generation));
    RETURN_IF_ERROR(CompareModels(arena_->model(), message.model, clients_.client(message.stamp.client).task));
  }
  RETURN_IF_ERROR(ValidateModel(message.model));
  const uint64_t value_bytes = ValueBytes(message.model, message.with_rows);
  if (bulk.size() != value_bytes + (message.with_slots ? SlotBytes(message.model) : 0))
    return absl::InvalidArgumentError("the initialisation's values do not fit its model");
  if (message.with_slots && message.steps.size() != static_cast<size_t>(NumStripes(message.model)))
    return absl::InvalidArgumentError("the initialisation's step counters do not fit its model");
  const int num_clients = static_cast<int>(clients_.clients().size());
  if (!arena_) {
    ASSIGN_OR_RETURN(arena_, Arena::Create(message.model, num_clients, memory_, options_.probe));
    arena_->header().one_process = options_.one_process ? 1 : 0;
  }
  for (int i = 0; i < num_clients; ++i) RecordClient(i);
  RecordChief();
  ASSIGN_OR_RETURN(const std::string work, work_.Load(*arena_, message.work));
  known_step_ = message.global_step;
  hold_.Release();
  const std::vector<uint64_t> highest = arena_->HighestSequences();
  for (int i = 0; i < num_clients; ++i) hold_.Settle(*arena_, i, highest[i]);
  arena_->Load({.generation = message.generation,
                .global_step = message.global_step,
                .minibatches = message.minibatches,
                .values = bulk.first(value_bytes),
                .slots = bulk.subspan(value_bytes),
                .steps = message.with_slots ? std::span<const uint64_t>(message.steps) : std::span<const uint64_t>(),
                .with_rows = message.with_rows,
                .work = work});
  gates_.Attach(*arena_);
  return absl::OkStatus();
}

absl::Status StoreService::On(const InitializeRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(Initialize(call.connection, message, call.bulk));
  const std::string& by = clients_.client(message.stamp.client).task;
  LogInfo(options_.one_process ? "the model is in this process" : absl::StrCat("initialised by ", by), ": ",
          arena_->layout().value_bytes(), " bytes in ", message.model.slices.size(),
          message.model.slices.size() == 1 ? " slice" : " slices",
          options_.lead ? absl::StrCat(", global step ", message.global_step) : "");
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
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  RETURN_IF_ERROR(ValidateModel(message.model));
  RETURN_IF_ERROR(NeedTraining());
  const int client = message.stamp.client;
  if (ReadyFor(message)) {
    AnswerReady(client, message, std::move(call.responder));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(NeedChief(arena_.get(), clients_));
  clients_.client(client).waiting_for = arena_ ? "the chief to load a checkpoint" : "the chief to initialise the model";
  waiters_.push_back({call.connection, client, std::move(message), std::move(call.responder)});
  return absl::OkStatus();
}

bool StoreService::ReadyFor(const AwaitReadyRequest& request) const {
  return arena_ && arena_->header().generation >= request.generation;
}

void StoreService::AnswerReady(int client, const AwaitReadyRequest& request, Responder responder) {
  clients_.client(client).waiting_for.clear();
  if (absl::Status status = CompareModels(arena_->model(), request.model, clients_.client(client).task); !status.ok())
    return responder.Fail(std::move(status));
  responder.Send(Encode(AwaitReadyReply{Observe(arena_->header().counters.global_step), arena_->header().generation}));
}

absl::Status StoreService::On(const HeartbeatRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  call.responder.Send({});
  gates_.Look();  // who was lost may be there again
  return absl::OkStatus();
}

absl::Status StoreService::On(const DoneRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  clients_.SetDone(message.stamp.client, loop_.Now());
  if (arena_) RecordClient(static_cast<int>(message.stamp.client));
  if (arena_) DirectDoor::Leave(*arena_, static_cast<int>(message.stamp.client));
  call.responder.Send({});
  LogInfo(clients_.client(message.stamp.client).task, " is done");
  if (const absl::Status left = NeedChief(arena_.get(), clients_); !left.ok())
    for (Waiter& waiter : std::exchange(waiters_, {})) waiter.responder.Fail(left);
  const auto waited_for = clients_.WaitedFor(loop_.Now());
  if (clients_.chief_done() && !waited_for.empty()) LogInfo("the end waits for ", absl::StrJoin(waited_for, ", "));
  LookAtEnd();
  return absl::OkStatus();
}

absl::Status StoreService::On(const BarrierRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  RETURN_IF_ERROR(NeedTraining());
  gates_.OnBarrier(call.connection, message, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const ShutdownRequest& message, IncomingCall& call) {
  call.responder.Send({});
  Shutdown(message.reason);
  return absl::OkStatus();
}

absl::Status StoreService::On(const OpenDirectRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  RETURN_IF_ERROR(NeedModel());
  const int client = static_cast<int>(message.stamp.client);
  ASSIGN_OR_RETURN(const OpenDirectReply reply, door_.Open(*arena_, client, clients_.client(client).incarnation));
  call.responder.Send(Encode(reply));
  return absl::OkStatus();
}

absl::Status StoreService::On(const EnterDirectRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  RETURN_IF_ERROR(NeedModel());
  RETURN_IF_ERROR(NeedTraining());
  const absl::Status entered = door_.Enter(*arena_, static_cast<int>(message.stamp.client), message.ticket);
  gates_.Look();
  if (entered.ok()) call.responder.Send({});
  return entered;
}

absl::Status StoreService::HearChief(ConnectionId connection, const Stamp& stamp, uint64_t chief_epoch) {
  RETURN_IF_ERROR(clients_.Hear(stamp, connection, loop_.Now()));
  return clients_.CheckChief(stamp, chief_epoch);
}

absl::Status StoreService::On(const SavePartRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(NeedModel());
  if (!SeesSave(*options_.files, message.directory, message.save_id))
    return absl::NotFoundError(
        absl::StrCat(options_.task, " does not see ", message.directory, ": its part goes through the chief"));
  part_saver_.Save(JoinPath(message.directory, TemporaryName(message.file)), hold_.Marked(message.stamp, message.hold),
                   std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const ExportPartRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  RETURN_IF_ERROR(NeedModel());
  part_saver_.Export(hold_.Marked(message.stamp, message.hold), std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const HoldRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(NeedModel());
  hold_.Hold(message, arena_, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const MarkRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(HearChief(call.connection, message.stamp, message.chief_epoch));
  RETURN_IF_ERROR(NeedModel());
  hold_.Mark(message, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const CommitCheckpointRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(HearChief(call.connection, message.stamp, message.chief_epoch));
  if (!options_.lead) return absl::InvalidArgumentError("only ps 0 commits checkpoints");
  if (message.directory.empty()) {
    call.responder.Send({});
    return absl::OkStatus();
  }
  const Retention retention{static_cast<int>(message.keep), message.preserve_every_hours > 0
                                                                ? absl::Hours(message.preserve_every_hours)
                                                                : absl::InfiniteDuration()};
  part_saver_.Commit(message.directory, message.manifest, retention, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(LoadCheckpointRequest message, IncomingCall& call) {
  RETURN_IF_ERROR(NeedLead());
  RETURN_IF_ERROR(NeedTraining());
  RETURN_IF_ERROR(NeedModel());
  if (load_) return absl::AlreadyExistsError(absl::StrCat("the chief is to load ", load_->path));
  const int chief = clients_.chief();
  if (chief < 0 || clients_.client(chief).done || !clients_.Alive(clients_.client(chief), loop_.Now()))
    return absl::UnavailableError("no chief is alive that could load a checkpoint; start it, and ask again");
  load_ = {std::move(message.path), std::move(call.responder)};
  arena_->header().load_requested = 1;
  return absl::OkStatus();
}

absl::Status StoreService::On(const ReportLoadRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  call.responder.Send({});
  if (!load_) return absl::OkStatus();  // who asked has heard already
  Load load = *std::exchange(load_, std::nullopt);
  if (arena_) arena_->header().load_requested = 0;
  if (message.error.empty()) {
    load.responder.Send(Encode(LoadCheckpointReply{message.global_step}));
  } else {
    load.responder.Fail(absl::FailedPreconditionError(message.error));
  }
  return absl::OkStatus();
}

void StoreService::LookAgainAt(absl::Time when) {
  if (end_timer_) loop_.CancelTimer(*end_timer_);
  end_timer_.reset();
  if (when == absl::InfiniteFuture()) return;
  end_timer_ = loop_.CallAt(when, [this] {
    end_timer_.reset();
    LookAtEnd();
  });
}

void StoreService::LookAtEnd() {
  if (!ending_.empty()) return LookAtLeaving();
  gates_.Look();
  const absl::Time now = loop_.Now();
  switch (clients_.Look(now)) {
    case ClientTable::Phase::kEnded:
      return End(absl::OkStatus(), HowAllEnded(clients_));
    case ClientTable::Phase::kAbandoned:
      return End(absl::UnavailableError("every worker has left without finishing"), "abandoned");
    case ClientTable::Phase::kTraining:
      break;
  }
  LookAgainAt(clients_.NextLook(now));
}

// Training has ended: when the last has left, or the grace is over, the linger begins.
void StoreService::LookAtLeaving() {
  if (lingering_) return;
  const absl::Time now = loop_.Now();
  const absl::Time give_up = ended_at_ + options_.shutdown_grace;
  const absl::Time last_leaves = clients_.LastLeaves(now);
  if (last_leaves > now && now < give_up) return LookAgainAt(std::min(last_leaves, give_up));
  lingering_ = true;
  if (end_timer_) loop_.CancelTimer(*end_timer_);
  end_timer_ = loop_.CallAt(now + options_.linger, [this] {
    end_timer_.reset();
    AnswerKept();
    part_saver_.FailAll(absl::UnavailableError("this ps has ended: it waits for nobody any longer"));
    finished_ = true;
  });
}

void StoreService::AnswerKept() {
  const absl::Status ended = absl::CancelledError(absl::StrCat("training has ended: ", ending_));
  for (Waiter& waiter : std::exchange(waiters_, {})) waiter.responder.Fail(ended);
  gates_.FailAll(ended);
  queues_.FailAll(ended);
  if (load_) std::exchange(load_, std::nullopt)->responder.Fail(ended);
}

void StoreService::Shutdown(const std::string& reason) {
  if (ending_.empty()) End(absl::OkStatus(), absl::StrCat("shut down: ", reason));
}

void StoreService::End(absl::Status outcome, const std::string& why) {
  LogInfo("training has ended: ", why);
  ending_ = why;
  if (arena_) arena_->header().ended = 1;
  outcome_ = std::move(outcome);
  // First: a round that fires only now that no cut holds it is answered with what it made.
  hold_.End();
  AnswerKept();
  ended_at_ = loop_.Now();
  LookAtLeaving();
}

std::vector<uint64_t> StoreService::AllStaleness() const {
  std::vector<uint64_t> all = staleness_;
  for (size_t i = 0; arena_ && i < all.size(); ++i) all[i] += arena_->header().staleness[i];
  return all;
}

StoreService::View StoreService::MakeView() const {
  std::vector<WaitingFor> waiting = gates_.Describe();
  queues_.Describe(clients_, waiting);
  return {.options = &options_,
          .now = loop_.Now(),
          .started = started_,
          .arena = arena_.get(),
          .clients = &clients_,
          .waiting = std::move(waiting),
          .queues = queues_.Describe(),
          .work = work_.Describe(),
          .ending = ending_,
          .requests = requests_,
          .staleness = AllStaleness(),
          .rows = rows_,
          .listener = listener_stats_()};
}

}  // namespace muster
