#include "muster/sim/simulation_plant.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/lifetime.h"
#include "muster/store/service/passing_handler.h"

namespace muster {
namespace {

// Who doesn't listen to an answer.
class NobodyListens final : public Responder::Sink {
 public:
  void Send(uint64_t, absl::Status, absl::string_view, absl::Span<const ByteSpan>,
            std::shared_ptr<const void>) override {}
};

bool IsPush(const IncomingRequest& request, PushPullRequest& message) {
  return request.method == static_cast<uint16_t>(StoreMethod::kPushPull) && Decode(request.control, message).ok() &&
         (!message.pushed.empty() || message.minibatches > 0);
}

// Answers a push with the newest values, and applies it a moment later.
class AcknowledgeEarly final : public PassingHandler {
 public:
  AcknowledgeEarly(StoreService& inner, EventLoop& loop) : PassingHandler(inner), loop_(loop) {}

  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    PushPullRequest message;
    if (bulk == nullptr || !IsPush(request, message))
      return inner_.Handle(request, std::move(bulk), std::move(responder));
    IncomingRequest pull = request;
    message.pushed.clear();
    message.minibatches = 0;
    message.update = false;
    pull.control = Encode(message);
    pull.bulk_bytes = 0;
    inner_.Handle(pull, nullptr, std::move(responder));
    loop_.CallAt(loop_.Now() + absl::Milliseconds(1),
                 [this, token = lifetime_.token(), request = std::move(request), bulk = std::move(bulk)]() mutable {
                   if (!token.alive()) return;
                   inner_.Handle(request, std::move(bulk), Responder(std::make_unique<NobodyListens>()));
                 });
  }

 private:
  EventLoop& loop_;
  Lifetime lifetime_;  // the ps may be gone before the push is applied
};

class AcknowledgeEarlyPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop& loop) override {
    return std::make_unique<AcknowledgeEarly>(service, loop);
  }
};

// Counts a retry of a counted push again.
class CountRetries final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    PushPullRequest message;
    const bool counts = IsPush(request, message) && message.minibatches > 0;
    Arena* arena = inner_.MakeView().arena;
    if (counts && arena != nullptr &&
        arena->client(message.stamp.client).numbers.last_counted == message.stamp.sequence)
      arena->client(message.stamp.client).numbers.last_counted = message.stamp.sequence - 1;
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }
};

class CountRetriesPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<CountRetries>(service);
  }
};

// Sends what another sink is given, its bulk being that of the first time.
class StaleSink final : public Responder::Sink {
 public:
  StaleSink(Responder inner, std::shared_ptr<std::vector<std::byte>> first)
      : inner_(std::move(inner)), first_(std::move(first)) {}
  void Send(uint64_t, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void>) override {
    if (!status.ok()) return inner_.Fail(std::move(status));
    if (first_->empty())
      for (const ByteSpan segment : bulk) first_->insert(first_->end(), segment.begin(), segment.end());
    inner_.Send(control, {ByteSpan(*first_)}, first_);
  }

 private:
  Responder inner_;
  const std::shared_ptr<std::vector<std::byte>> first_;
};

// Takes the snapshot for checkpoints that go through the chief once, and never again.
class ExportStale final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    if (request.method == static_cast<uint16_t>(StoreMethod::kExportPart))
      responder = Responder(std::make_unique<StaleSink>(std::move(responder), first_));
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }

 private:
  const std::shared_ptr<std::vector<std::byte>> first_ = std::make_shared<std::vector<std::byte>>();
};

class ExportStalePlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<ExportStale>(service);
  }
};

// Forgets who waits for the model when any connection closes: their answers never leave.
class ForgetWaiters final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    if (request.method == static_cast<uint16_t>(StoreMethod::kAwaitReady) && disconnected_)
      return forgotten_.push_back(std::move(responder));
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }
  void OnDisconnect(ConnectionId connection) override {
    disconnected_ = true;
    inner_.OnDisconnect(connection);
  }

 private:
  bool disconnected_ = false;
  std::vector<Responder> forgotten_;
};

class ForgetWaitersPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<ForgetWaiters>(service);
  }
};

// A client's channel that hands everything on, its pushes changed.
class ChangedPushChannel : public Channel {
 public:
  explicit ChangedPushChannel(std::unique_ptr<Channel> inner) : inner_(std::move(inner)) {}
  CallId Call(const Request& request, ReplyCallback done) override {
    PushPullRequest message;
    if (request.method != static_cast<uint16_t>(StoreMethod::kPushPull) || !Decode(request.control, message).ok())
      return inner_->Call(request, std::move(done));
    Change(message);
    Request changed = request;
    changed.control = Encode(message);
    return inner_->Call(changed, std::move(done));
  }
  void Cancel(CallId call) override { inner_->Cancel(call); }
  const std::string& peer() const override { return inner_->peer(); }
  Stats stats() const override { return inner_->stats(); }

 private:
  virtual void Change(PushPullRequest& message) = 0;
  const std::unique_ptr<Channel> inner_;
};

// Sends a retry under a number of its own.
class RenumberRetries final : public ChangedPushChannel {
 public:
  using ChangedPushChannel::ChangedPushChannel;

 private:
  void Change(PushPullRequest& message) override {
    if (message.pushed.empty()) return;
    if (message.stamp.sequence == last_) ++shift_;
    last_ = message.stamp.sequence;
    message.stamp.sequence += shift_;
  }
  uint64_t last_ = 0;
  uint64_t shift_ = 0;
};

// Says of a push that it has one minibatch, whatever its window was.
class CountOne final : public ChangedPushChannel {
 public:
  using ChangedPushChannel::ChangedPushChannel;

 private:
  void Change(PushPullRequest& message) override { message.minibatches = std::min(message.minibatches, 1U); }
};

// Pushes without the scale that is to be applied: neither a mean nor the staleness counts.
class ForgetScales final : public ChangedPushChannel {
 public:
  using ChangedPushChannel::ChangedPushChannel;

 private:
  void Change(PushPullRequest& message) override {
    message.scales.clear();
    message.staleness_scale = StalenessScale::kNone;
  }
};

class ForgetScalesPlant final : public SimulationPlant {
 public:
  std::unique_ptr<Channel> WrapChannel(std::unique_ptr<Channel> channel) override {
    return std::make_unique<ForgetScales>(std::move(channel));
  }
};

class CountOnePlant final : public SimulationPlant {
 public:
  std::unique_ptr<Channel> WrapChannel(std::unique_ptr<Channel> channel) override {
    return std::make_unique<CountOne>(std::move(channel));
  }
};

class RenumberRetriesPlant final : public SimulationPlant {
 public:
  std::unique_ptr<Channel> WrapChannel(std::unique_ptr<Channel> channel) override {
    return std::make_unique<RenumberRetries>(std::move(channel));
  }
};

// Lets ps 0 count with the push itself, before the other ps have it.
class CountEarly final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    PushPullRequest message;
    const StoreService::View view = inner_.MakeView();
    if (IsPush(request, message) && !message.pushed.empty() && message.minibatches == 0 && view.arena != nullptr &&
        view.options->lead && view.arena->client(message.stamp.client).numbers.last_counted < message.stamp.sequence) {
      view.arena->client(message.stamp.client).numbers.last_counted = message.stamp.sequence;
      ++view.arena->header().counters.global_step;
      ++view.arena->header().counters.minibatches;
    }
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }
};

class CountEarlyPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<CountEarly>(service);
  }
};

// Restarted, has forgotten who contributed to the round that is being collected.
class ForgetContributorsPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    const StoreService::View view = service.MakeView();
    if (view.arena == nullptr) return nullptr;
    view.arena->header().gate.contributors = 0;
    for (size_t i = 0; i < view.clients->clients().size(); ++i)
      view.arena->client(static_cast<int>(i)).numbers.contributed = 0;
    return nullptr;
  }
};

// Takes pushes without their clocks: nobody waits for the slowest.
class ForgetClocks final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override {
    return inner_.PrepareBulk(WithoutClock(request));
  }
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    request = WithoutClock(std::move(request));
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }

 private:
  static IncomingRequest WithoutClock(IncomingRequest request) {
    PushPullRequest message;
    if (!IsPush(request, message)) return request;
    message.clock = 0;
    request.control = Encode(message);
    return request;
  }
};

class ForgetClocksPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<ForgetClocks>(service);
  }
};

// Gives everybody its turn as soon as it asks.
class AnswerTurns final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    AwaitTurnRequest message;
    if (inner_.MakeView().arena == nullptr || request.method != static_cast<uint16_t>(StoreMethod::kAwaitTurn) ||
        !Decode(request.control, message).ok())
      return inner_.Handle(request, std::move(bulk), std::move(responder));
    responder.Send(Encode(AwaitTurnReply{message.clock}));
  }
};

class AnswerTurnsPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<AnswerTurns>(service);
  }
};

// Lets everybody pass who comes to a barrier.
class OpenBarriers final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    BarrierRequest message;
    if (request.method == static_cast<uint16_t>(StoreMethod::kBarrier) && Decode(request.control, message).ok()) {
      message.parties = 1;
      request.control = Encode(message);
    }
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }
};

class OpenBarriersPlant final : public SimulationPlant {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<OpenBarriers>(service);
  }
};

// A bug that the store itself knows how to commit.
template <PlantedBug bug>
class InsidePlant final : public SimulationPlant {
 public:
  bool Has(PlantedBug asked) const override { return asked == bug; }
};

template <typename Plant>
std::unique_ptr<SimulationPlant> Make() {
  return std::make_unique<Plant>();
}

const std::map<std::string, std::unique_ptr<SimulationPlant> (*)()>& Plants() {
  static const auto& plants = *new std::map<std::string, std::unique_ptr<SimulationPlant> (*)()>{
      {"acknowledge-early", &Make<AcknowledgeEarlyPlant>},
      {"answer-turns", &Make<AnswerTurnsPlant>},
      {"count-early", &Make<CountEarlyPlant>},
      {"count-one", &Make<CountOnePlant>},
      {"count-retries", &Make<CountRetriesPlant>},
      {"export-stale", &Make<ExportStalePlant>},
      {"forget-clocks", &Make<ForgetClocksPlant>},
      {"forget-contributors", &Make<ForgetContributorsPlant>},
      {"forget-scales", &Make<ForgetScalesPlant>},
      {"forget-waiters", &Make<ForgetWaitersPlant>},
      {"inside-mark-without-hold", &Make<InsidePlant<PlantedBug::kMarkWithoutHold>>},
      {"open-barriers", &Make<OpenBarriersPlant>},
      {"renumber-retries", &Make<RenumberRetriesPlant>},
      {"inside-commit-before-header", &Make<InsidePlant<PlantedBug::kCommitBeforeHeader>>},
      {"inside-count-contributor-twice", &Make<InsidePlant<PlantedBug::kCountContributorTwice>>},
      {"inside-count-twice", &Make<InsidePlant<PlantedBug::kCountTwice>>},
      {"inside-fire-early", &Make<InsidePlant<PlantedBug::kFireEarly>>},
      {"inside-forget-clients", &Make<InsidePlant<PlantedBug::kForgetClients>>},
      {"inside-ignore-sequence", &Make<InsidePlant<PlantedBug::kIgnoreSequence>>}};
  return plants;
}

}  // namespace

const std::vector<std::string>& PlantNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, make] : Plants()) all.push_back(name);
    return all;
  }();
  return names;
}

absl::StatusOr<std::unique_ptr<SimulationPlant>> MakePlant(const std::string& name) {
  const auto found = Plants().find(name);
  if (found == Plants().end())
    return absl::InvalidArgumentError(
        absl::StrCat("there is no plant '", name, "'; there are ", absl::StrJoin(PlantNames(), ", ")));
  return found->second();
}

}  // namespace muster
