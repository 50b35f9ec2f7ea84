#include "muster/store/store_service.h"

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
#include "muster/store/checkpoint_part.h"
#include "muster/store/store_status.h"

namespace muster {
namespace {

// Staleness is counted exactly up to here, which is far beyond what a usable number of workers produces.
constexpr size_t kStalenessBuckets = 65;

bool Pulls(PullWhat what, VariableKind kind) {
  return what == PullWhat::kEverything || (what == PullWhat::kTrainable && kind == VariableKind::kTrainable);
}

}  // namespace

// A request with bulk, its control message decoded once, before its bulk is read.
class StoreService::DecodedBulk final : public BulkTarget {
 public:
  DecodedBulk(BufferPool::Handle buffer, size_t bytes)
      : buffer_(std::move(buffer)), bytes_(buffer_->first(bytes)), segments_{bytes_} {}
  const MutableSegments& segments() const override { return segments_; }
  ByteSpan bytes() const { return bytes_; }

  PushPullRequest push_pull;
  InitializeRequest initialize;

 private:
  const BufferPool::Handle buffer_;
  const MutableByteSpan bytes_;
  const MutableSegments segments_;
};

StoreService::StoreService(EventLoop& loop, StoreOptions options)
    : loop_(loop),
      options_(std::move(options)),
      started_(loop.Now()),
      clients_(options_.workers, options_.lease),
      memory_(options_.memory),
      gates_(loop, clients_, options_.lead, options_.probe,
             [this](const PushPullRequest& request, PushPullReply reply, Responder responder) {
               AnswerPush(request, std::move(reply), std::move(responder));
             }),
      part_saver_(loop, *options_.files, options_.background),
      staleness_(kStalenessBuckets),
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
  arena_->RecoverCount();
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
  LogInfo("found the model of an earlier life: ", arena_->layout().value_bytes(), " bytes, version ",
          arena_->header().counters.updates, ", global step ", arena_->header().counters.global_step);
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
  switch (static_cast<StoreMethod>(request.method)) {
    case StoreMethod::kPushPull: {
      PushPullRequest message;
      RETURN_IF_ERROR(Decode(request.control, message));
      RETURN_IF_ERROR(CheckPushPull(request.connection, message, request.bulk_bytes));
      auto target = std::make_unique<DecodedBulk>(buffers_.Take(request.bulk_bytes), request.bulk_bytes);
      target->push_pull = std::move(message);
      return target;
    }
    case StoreMethod::kInitialize: {
      InitializeRequest message;
      RETURN_IF_ERROR(Decode(request.control, message));
      RETURN_IF_ERROR(clients_.Hear(message.stamp, request.connection, loop_.Now()));
      RETURN_IF_ERROR(clients_.CheckChief(message.stamp, message.chief_epoch));
      RETURN_IF_ERROR(ValidateModel(message.model));
      const uint64_t expected = ValueBytes(message.model) + (message.with_slots ? SlotBytes(message.model) : 0);
      if (request.bulk_bytes != expected)
        return absl::InvalidArgumentError(
            absl::StrCat("initialisation of ", expected, " bytes came with ", request.bulk_bytes));
      auto target = std::make_unique<DecodedBulk>(buffers_.Take(request.bulk_bytes), request.bulk_bytes);
      target->initialize = std::move(message);
      return target;
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat("method ", StoreMethodName(request.method), " takes no bulk, but ",
                                                     request.bulk_bytes, " bytes came"));
  }
}

void StoreService::Handle(IncomingRequest request, std::unique_ptr<BulkTarget> bulk, Responder responder) {
  ++requests_[request.method < kStoreMethods ? request.method : 0];
  const auto* decoded = static_cast<DecodedBulk*>(bulk.get());
  switch (static_cast<StoreMethod>(request.method)) {
    case StoreMethod::kPushPull: {
      if (decoded != nullptr)
        return OnPushPull(request.connection, decoded->push_pull, decoded->bytes(), std::move(responder));
      PushPullRequest message;
      if (absl::Status status = Decode(request.control, message); !status.ok())
        return responder.Fail(std::move(status));
      return OnPushPull(request.connection, message, {}, std::move(responder));
    }
    case StoreMethod::kInitialize: {
      if (decoded != nullptr)
        return OnInitialize(request.connection, decoded->initialize, decoded->bytes(), std::move(responder));
      InitializeRequest message;  // a ps that holds nothing is initialised without bulk
      if (absl::Status status = Decode(request.control, message); !status.ok())
        return responder.Fail(std::move(status));
      return OnInitialize(request.connection, message, {}, std::move(responder));
    }
    case StoreMethod::kJoin:
      return OnJoin(request, std::move(responder));
    case StoreMethod::kAwaitReady:
      return OnAwaitReady(request, std::move(responder));
    case StoreMethod::kHeartbeat:
    case StoreMethod::kDone:
      return OnStamped(request, std::move(responder));
    case StoreMethod::kShutdown: {
      ShutdownRequest message;
      if (absl::Status status = Decode(request.control, message); !status.ok())
        return responder.Fail(std::move(status));
      responder.Send({});
      return Shutdown(message.reason);
    }
    case StoreMethod::kStatus:
      return responder.Send(StatusJson(MakeView()));
    case StoreMethod::kSavePart:
      return OnSavePart(request, std::move(responder));
    case StoreMethod::kExportPart:
      return OnExportPart(request, std::move(responder));
    case StoreMethod::kCommitCheckpoint:
      return OnCommitCheckpoint(request, std::move(responder));
    case StoreMethod::kBarrier:
      return OnBarrier(request, std::move(responder));
    case StoreMethod::kLoadCheckpoint:
      return OnLoadCheckpoint(request, std::move(responder));
    case StoreMethod::kReportLoad:
      return OnReportLoad(request, std::move(responder));
  }
  responder.Fail(absl::UnimplementedError(
      absl::StrCat("this ps knows no method ", request.method, "; client and ps must be of the same version")));
}

void StoreService::OnJoin(const IncomingRequest& request, Responder responder) {
  JoinRequest message;
  if (absl::Status status = Decode(request.control, message); !status.ok()) return responder.Fail(std::move(status));
  JoinReply reply{.ready = arena_ != nullptr,
                  .ended = !ending_.empty(),
                  .ps_incarnation = options_.incarnation,
                  .generation = arena_ ? arena_->header().generation : 0};
  if (reply.ended) return responder.Send(Encode(reply));
  const absl::Time now = loop_.Now();
  const auto client = clients_.Join(message, request.connection, now);
  if (!client.ok()) return responder.Fail(client.status());
  reply.client = *client;
  if (message.chief) {
    const auto epoch = clients_.ClaimChief(*client, now);
    if (!epoch.ok()) return responder.Fail(epoch.status());
    reply.chief_epoch = *epoch;
  }
  if (arena_) {
    const bool new_life = arena_->client(*client).incarnation != message.incarnation;
    RecordClient(*client);
    if (new_life) gates_.Join(*client);
    if (message.chief) RecordChief();
    const ClientNumbers& numbers = arena_->client(*client).numbers;
    reply.last_sequence = std::max(numbers.last_applied, numbers.last_counted);
    reply.global_step = arena_->header().counters.global_step;
  }
  LogInfo(message.task, " joined (", message.where, ")", message.chief ? ", it is the chief" : "");
  responder.Send(Encode(reply));
  LookAtEnd();
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
  RETURN_IF_ERROR(clients_.Hear(message.stamp, connection, loop_.Now()));
  RETURN_IF_ERROR(clients_.CheckChief(message.stamp, message.chief_epoch));
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
  const uint64_t value_bytes = ValueBytes(message.model);
  if (bulk.size() != value_bytes + (message.with_slots ? SlotBytes(message.model) : 0))
    return absl::InvalidArgumentError("the initialisation's values do not fit its model");
  if (message.with_slots && message.steps.size() != static_cast<size_t>(NumStripes(message.model)))
    return absl::InvalidArgumentError("the initialisation's step counters do not fit its model");
  const int num_clients = static_cast<int>(clients_.clients().size());
  if (!arena_) {
    ASSIGN_OR_RETURN(arena_, Arena::Create(message.model, num_clients, memory_, options_.probe));
  }
  for (int i = 0; i < num_clients; ++i) RecordClient(i);
  RecordChief();
  known_step_ = message.global_step;
  arena_->Load({.generation = message.generation,
                .global_step = message.global_step,
                .minibatches = message.minibatches,
                .values = bulk.first(value_bytes),
                .slots = bulk.subspan(value_bytes),
                .steps = message.with_slots ? std::span<const uint64_t>(message.steps) : std::span<const uint64_t>()});
  gates_.Attach(*arena_);
  return absl::OkStatus();
}

void StoreService::OnInitialize(ConnectionId connection, const InitializeRequest& message, ByteSpan bulk,
                                Responder responder) {
  if (absl::Status status = Initialize(connection, message, bulk); !status.ok())
    return responder.Fail(std::move(status));
  LogInfo("initialised by ", clients_.client(message.stamp.client).task, ": ", message.model.slices.size(), " slices, ",
          arena_->layout().value_bytes(), " bytes, global step ", message.global_step);
  responder.Send({});
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    if (ReadyFor(waiter.request)) {
      AnswerReady(waiter.client, waiter.request, std::move(waiter.responder));
    } else {
      waiters_.push_back(std::move(waiter));
    }
  }
}

void StoreService::OnAwaitReady(const IncomingRequest& request, Responder responder) {
  AwaitReadyRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (status.ok()) status = ValidateModel(message.model);
  if (status.ok()) status = NeedTraining();
  if (!status.ok()) return responder.Fail(std::move(status));
  const int client = message.stamp.client;
  if (ReadyFor(message)) return AnswerReady(client, message, std::move(responder));
  clients_.client(client).waiting_for = arena_ ? "the chief to load a checkpoint" : "the chief to initialise the model";
  waiters_.push_back({request.connection, client, std::move(message), std::move(responder)});
}

bool StoreService::ReadyFor(const AwaitReadyRequest& request) const {
  return arena_ && arena_->header().generation >= request.generation;
}

void StoreService::AnswerReady(int client, const AwaitReadyRequest& request, Responder responder) {
  clients_.client(client).waiting_for.clear();
  if (absl::Status status = CompareModels(arena_->model(), request.model, clients_.client(client).task); !status.ok())
    return responder.Fail(std::move(status));
  responder.Send(Encode(AwaitReadyReply{arena_->header().counters.global_step, arena_->header().generation}));
}

absl::Status StoreService::CheckPushPull(ConnectionId connection, const PushPullRequest& message, size_t bulk_bytes) {
  if (!message.pushed.empty() || message.minibatches > 0) RETURN_IF_ERROR(NeedTraining());
  RETURN_IF_ERROR(NeedModel());
  RETURN_IF_ERROR(clients_.Hear(message.stamp, connection, loop_.Now()));
  if (message.pull > PullWhat::kEverything)
    return absl::InvalidArgumentError(absl::StrCat("unknown kind of pull ", static_cast<int>(message.pull)));
  if (message.minibatches > 0 && !options_.lead) return absl::InvalidArgumentError("only ps 0 counts the global step");
  const StoreModel& model = arena_->model();
  RETURN_IF_ERROR(Gates::Check(model, message));
  uint64_t expected = 0;
  int64_t previous = -1;
  for (uint32_t index : message.pushed) {
    if (index >= model.slices.size() || static_cast<int64_t>(index) <= previous)
      return absl::InvalidArgumentError(
          absl::StrCat("push names slice ", index, " of ", model.slices.size(), " (ascending order, each once)"));
    previous = index;
    if (model.variable(model.slices[index]).kind == VariableKind::kFrozen)
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", model.variable(model.slices[index]).name, "' is frozen and takes no push"));
    expected += model.slices[index].bytes;
  }
  if (expected != bulk_bytes)
    return absl::InvalidArgumentError(absl::StrCat("a push of ", message.pushed.size(), " slices takes ", expected,
                                                   " bytes, but ", bulk_bytes, " came"));
  if (!message.scales.empty() && message.scales.size() != message.pushed.size())
    return absl::InvalidArgumentError(
        absl::StrCat("a push of ", message.pushed.size(), " slices came with ", message.scales.size(), " scales"));
  // A question about the global step alone has no values to do with.
  const bool touches_values = !message.pushed.empty() || message.minibatches > 0 || message.pull != PullWhat::kNothing;
  if (touches_values && message.generation != arena_->header().generation)
    return absl::AbortedError(absl::StrCat("the values of ", options_.task, " were loaded anew (generation ",
                                           arena_->header().generation, ", not ", message.generation,
                                           "): they have to be pulled again"));
  return absl::OkStatus();
}

void StoreService::OnPushPull(ConnectionId connection, const PushPullRequest& message, ByteSpan bulk,
                              Responder responder) {
  // Looked at again although PrepareBulk did: while the bulk came in, a restarted chief may have brought another model,
  // or the sender may have been replaced.
  if (absl::Status status = CheckPushPull(connection, message, bulk.size()); !status.ok())
    return responder.Fail(std::move(status));
  if (message.contributes) {
    ++clients_.client(message.stamp.client).pushes;
    return gates_.Contribute(connection, message, bulk, std::move(responder));
  }
  // An answer that may be kept back is filled when it is sent.
  if (message.clock > 0) {
    PushPullReply reply = ApplyPush(message, bulk, {});
    return gates_.AnswerApplied(connection, message, reply, std::move(responder));
  }
  const size_t pull_bytes = PullBytes(message.pull);
  if (pull_bytes == 0) return responder.Send(Encode(CompleteReply(message, ApplyPush(message, bulk, {}))));
  const BufferPool::Handle buffer = buffers_.Take(pull_bytes);
  const MutableByteSpan pulled = buffer->first(pull_bytes);
  const PushPullReply reply = CompleteReply(message, ApplyPush(message, bulk, pulled));
  responder.Send(Encode(reply), {pulled}, buffer);
}

size_t StoreService::PullBytes(PullWhat what) const {
  size_t bytes = 0;
  for (const PlacedSlice& slice : arena_->model().slices)
    if (Pulls(what, arena_->model().variable(slice).kind)) bytes += slice.bytes;
  return bytes;
}

void StoreService::AnswerPush(const PushPullRequest& request, PushPullReply reply, Responder responder) {
  reply = CompleteReply(request, std::move(reply));
  const size_t pull_bytes = PullBytes(request.pull);
  if (pull_bytes == 0) return responder.Send(Encode(reply));
  const BufferPool::Handle buffer = buffers_.Take(pull_bytes);
  const MutableByteSpan pulled = buffer->first(pull_bytes);
  MutableByteSpan rest = pulled;
  const StoreModel& model = arena_->model();
  for (size_t i = 0; i < model.slices.size(); ++i) {
    if (!Pulls(request.pull, model.variable(model.slices[i]).kind)) continue;
    arena_->Read(static_cast<int>(i), rest.first(model.slices[i].bytes));
    rest = rest.subspan(model.slices[i].bytes);
  }
  responder.Send(Encode(reply), {pulled}, buffer);
}

PushPullReply StoreService::CompleteReply(const PushPullRequest& request, PushPullReply reply) const {
  const ArenaHeader& header = arena_->header();
  reply.version = header.counters.updates;
  reply.global_step = header.counters.global_step;
  reply.round = header.gate.round;
  reply.clock = arena_->client(static_cast<int>(request.stamp.client)).numbers.clock;
  if (load_ && clients_.chief() == static_cast<int>(request.stamp.client)) reply.load = load_->path;
  return reply;
}

PushPullReply StoreService::ApplyPush(const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled) {
  const StoreModel& model = arena_->model();
  const auto& slices = arena_->layout().slices();
  const ClientNumbers& numbers = arena_->client(message.stamp.client).numbers;
  Arena::Push push{.client = static_cast<int>(message.stamp.client),
                   .sequence = message.stamp.sequence,
                   .generation = message.generation};
  // Schedules go by the global step: ps 0 counts it, the others know what the senders have heard from it.
  if (!options_.lead) known_step_ = std::max(known_step_, message.global_step);
  const int64_t global_step = options_.lead ? arena_->header().counters.global_step : known_step_;
  const ArenaCounters& counters = arena_->header().counters;
  PushPullReply reply;
  // Buffers alone are no update: they have no staleness, and nobody's gradients get older by them.
  const bool updates = std::any_of(message.pushed.begin(), message.pushed.end(), [&model](uint32_t i) {
    return model.variable(model.slices[i]).kind == VariableKind::kTrainable;
  });
  const bool first_time = numbers.last_applied < message.stamp.sequence;
  if (updates && first_time) {
    reply.staleness = counters.updates - std::min(counters.updates, message.pulled_version);
    ++staleness_[std::min<size_t>(reply.staleness, kStalenessBuckets - 1)];
    ++clients_.client(message.stamp.client).pushes;
  }
  size_t next_push = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    const bool pull = !pulled.empty() && Pulls(message.pull, model.variable(model.slices[i]).kind);
    const MutableByteSpan into = pull ? pulled.first(slices[i].bytes) : MutableByteSpan();
    if (next_push < message.pushed.size() && message.pushed[next_push] == i) {
      const RuleSpec& rule = model.rule(model.slices[i]);
      push.learning_rate = LearningRateAt(rule.schedule, rule.learning_rate, global_step);
      push.gradient_scale = message.scales.empty() ? 1 : message.scales[next_push];
      // The generation can't change in between: it is this process that loads, on this loop.
      MUSTER_CHECK(arena_->Apply(static_cast<int>(i), push, bulk.first(slices[i].bytes), into));
      bulk = bulk.subspan(slices[i].bytes);
      ++next_push;
    } else if (pull) {
      arena_->Read(static_cast<int>(i), into);
    }
    pulled = pulled.subspan(into.size());
  }
  CountPush(message, updates && first_time);
  return reply;
}

void StoreService::CountPush(const PushPullRequest& message, bool new_update) {
  const int client = static_cast<int>(message.stamp.client);
  Arena::Counted counted{client, arena_->client(client).numbers, arena_->header().counters, arena_->header().gate};
  ClientNumbers& numbers = counted.numbers;
  if (new_update) ++counted.counters.updates;
  const bool count_twice = options_.probe != nullptr && options_.probe->Has(PlantedBug::kCountTwice);
  const bool counts = message.minibatches > 0 && (numbers.last_counted < message.stamp.sequence || count_twice);
  const bool applies = (!message.pushed.empty() || message.clock > 0) && numbers.last_applied < message.stamp.sequence;
  if (!applies && !counts) return;
  if (counts) {
    ++counted.counters.global_step;
    counted.counters.minibatches += message.minibatches;
    numbers.last_counted = message.stamp.sequence;
  }
  if (applies) numbers.last_applied = message.stamp.sequence;
  numbers.clock = std::max(numbers.clock, message.clock);
  arena_->Count(counted);
}

void StoreService::OnStamped(const IncomingRequest& request, Responder responder) {
  HeartbeatRequest message;  // DoneRequest has the same fields
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (!status.ok()) return responder.Fail(std::move(status));
  const bool done = static_cast<StoreMethod>(request.method) == StoreMethod::kDone;
  if (done) {
    clients_.SetDone(message.stamp.client, loop_.Now());
    if (arena_) RecordClient(static_cast<int>(message.stamp.client));
  }
  responder.Send({});
  if (!done) return;
  LogInfo(clients_.client(message.stamp.client).task, " is done");
  const auto waited_for = clients_.WaitedFor(loop_.Now());
  if (clients_.chief_done() && !waited_for.empty()) LogInfo("the end waits for ", absl::StrJoin(waited_for, ", "));
  LookAtEnd();
}

void StoreService::OnBarrier(const IncomingRequest& request, Responder responder) {
  BarrierRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (status.ok()) status = NeedTraining();
  if (!status.ok()) return responder.Fail(std::move(status));
  gates_.OnBarrier(request.connection, message, std::move(responder));
}

void StoreService::OnSavePart(const IncomingRequest& request, Responder responder) {
  SavePartRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (status.ok()) status = clients_.CheckChief(message.stamp, message.chief_epoch);
  if (status.ok()) status = NeedModel();
  if (status.ok() && !SeesSave(*options_.files, message.directory, message.save_id))
    status = absl::NotFoundError(
        absl::StrCat(options_.task, " does not see ", message.directory, ": its part goes through the chief"));
  if (!status.ok()) return responder.Fail(std::move(status));
  part_saver_.Save(arena_, JoinPath(message.directory, TemporaryName(message.file)), std::move(responder));
}

void StoreService::OnExportPart(const IncomingRequest& request, Responder responder) {
  ExportPartRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (status.ok()) status = NeedModel();
  if (!status.ok()) return responder.Fail(std::move(status));
  part_saver_.Export(arena_, std::move(responder));
}

void StoreService::OnCommitCheckpoint(const IncomingRequest& request, Responder responder) {
  CommitCheckpointRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (status.ok()) status = clients_.CheckChief(message.stamp, message.chief_epoch);
  if (status.ok() && !options_.lead) status = absl::InvalidArgumentError("only ps 0 commits checkpoints");
  if (!status.ok()) return responder.Fail(std::move(status));
  if (message.directory.empty()) return responder.Send({});
  part_saver_.Commit(message.directory, message.manifest, std::move(responder));
}

void StoreService::OnLoadCheckpoint(const IncomingRequest& request, Responder responder) {
  LoadCheckpointRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok() && !options_.lead)
    status = absl::InvalidArgumentError(absl::StrCat(options_.task, " does not lead; ask ps:0"));
  if (status.ok()) status = NeedTraining();
  if (status.ok()) status = NeedModel();
  if (status.ok() && load_) status = absl::AlreadyExistsError(absl::StrCat("the chief is to load ", load_->path));
  const int chief = clients_.chief();
  if (status.ok() && (chief < 0 || clients_.client(chief).done || !clients_.Alive(clients_.client(chief), loop_.Now())))
    status = absl::UnavailableError("no chief is alive that could load a checkpoint; start it, and ask again");
  if (!status.ok()) return responder.Fail(std::move(status));
  load_ = {std::move(message.path), std::move(responder)};
}

void StoreService::OnReportLoad(const IncomingRequest& request, Responder responder) {
  ReportLoadRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (!status.ok()) return responder.Fail(std::move(status));
  responder.Send({});
  if (!load_) return;  // who asked has heard already
  Load load = *std::exchange(load_, std::nullopt);
  if (!message.error.empty()) return load.responder.Fail(absl::FailedPreconditionError(message.error));
  load.responder.Send(Encode(LoadCheckpointReply{message.global_step}));
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
      return End(absl::OkStatus(), "every task is done");
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
    finished_ = true;
  });
}

void StoreService::Shutdown(const std::string& reason) {
  if (ending_.empty()) End(absl::OkStatus(), absl::StrCat("shut down: ", reason));
}

void StoreService::End(absl::Status outcome, const std::string& why) {
  LogInfo("training has ended: ", why);
  ending_ = why;
  if (arena_) arena_->header().ended = 1;
  outcome_ = std::move(outcome);
  for (Waiter& waiter : std::exchange(waiters_, {}))
    waiter.responder.Fail(absl::CancelledError(absl::StrCat("training has ended: ", why)));
  gates_.FailAll(absl::CancelledError(absl::StrCat("training has ended: ", why)));
  if (load_) std::exchange(load_, std::nullopt)->responder.Fail(absl::CancelledError("training has ended"));
  ended_at_ = loop_.Now();
  LookAtLeaving();
}

StoreService::View StoreService::MakeView() const {
  return {.options = &options_,
          .now = loop_.Now(),
          .started = started_,
          .arena = arena_.get(),
          .clients = &clients_,
          .waiting = gates_.Describe(),
          .ending = ending_,
          .requests = requests_,
          .staleness = staleness_,
          .listener = listener_stats_()};
}

}  // namespace muster
