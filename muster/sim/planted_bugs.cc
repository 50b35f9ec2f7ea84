#include "muster/sim/planted_bugs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/lifetime.h"
#include "muster/store/service/passing_handler.h"
#include "muster/transport/forwarding_channel.h"

namespace muster {
namespace {

// Ignores the answer.
class NobodyListens final : public Responder::Sink {
 public:
  void Send(uint64_t, absl::Status, absl::string_view, absl::Span<const ByteSpan>,
            std::shared_ptr<const void>) override {}
};

bool IsPush(const IncomingRequest& request, PushPullRequest& message) {
  return request.method == static_cast<uint16_t>(StoreMethod::kPushPull) && Decode(request.control, message).ok() &&
         (!message.pushed.empty() || message.minibatches > 0);
}

// Answers a push with the newest values and applies it a moment later.
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

class AcknowledgeEarlyBug final : public PlantedClusterBug {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop& loop) override {
    return std::make_unique<AcknowledgeEarly>(service, loop);
  }
};

// Counts a retry of a counted push a second time.
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

// Passes answers on to another sink, but with the bulk of the first one.
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

// Reads each piece of a part for checkpoints that go through the chief only once.
class ExportStale final : public PassingHandler {
 public:
  using PassingHandler::PassingHandler;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override {
    FetchPartRequest fetch;
    if (request.method == static_cast<uint16_t>(StoreMethod::kFetchPart) && Decode(request.control, fetch).ok()) {
      auto& first = first_[{fetch.first, fetch.bytes}];
      if (first == nullptr) first = std::make_shared<std::vector<std::byte>>();
      responder = Responder(std::make_unique<StaleSink>(std::move(responder), first));
    }
    inner_.Handle(request, std::move(bulk), std::move(responder));
  }

 private:
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<std::vector<std::byte>>> first_;  // by where and how many
};

// When any connection closes, forgets the clients that wait for the model: their answers are never sent.
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

// A client's channel that passes everything on, with pushes changed.
class ChangedPushChannel : public ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;
  CallId Call(const Request& request, ReplyCallback done) override {
    PushPullRequest message;
    if (request.method != static_cast<uint16_t>(StoreMethod::kPushPull) || !Decode(request.control, message).ok())
      return inner_->Call(request, std::move(done));
    Change(message);
    Request changed = request;
    changed.control = Encode(message);
    return inner_->Call(changed, std::move(done));
  }

 private:
  virtual void Change(PushPullRequest& message) = 0;
};

// Sends a retry under a new number.
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

// Claims that a push has one minibatch, whatever its window was.
class CountOne final : public ChangedPushChannel {
 public:
  using ChangedPushChannel::ChangedPushChannel;

 private:
  void Change(PushPullRequest& message) override { message.minibatches = std::min(message.minibatches, 1U); }
};

// Removes the scale from pushes: neither a mean nor the staleness counts.
class ForgetScales final : public ChangedPushChannel {
 public:
  using ChangedPushChannel::ChangedPushChannel;

 private:
  void Change(PushPullRequest& message) override {
    message.scales.clear();
    message.staleness_scale = StalenessScale::kNone;
  }
};

// Lets ps 0 count as soon as it has the push, before the other ps have it.
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

// A restarted ps forgets who contributed to the round being collected.
class ForgetContributorsBug final : public PlantedClusterBug {
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

// Removes the clocks from pushes: no worker waits for the slowest.
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

// Gives every worker its turn as soon as it asks.
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

// Lets every worker pass a barrier at once.
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

// A bug between a ps and the network.
template <typename Handler>
class AtPs final : public PlantedClusterBug {
 public:
  std::unique_ptr<RequestHandler> WrapPs(StoreService& service, EventLoop&) override {
    return std::make_unique<Handler>(service);
  }
};

// A bug between a worker and the network.
template <typename Channels>
class AtWorker final : public PlantedClusterBug {
 public:
  std::unique_ptr<Channel> WrapChannel(std::unique_ptr<Channel> channel) override {
    return std::make_unique<Channels>(std::move(channel));
  }
};

// A bug that the store itself can commit.
template <PlantedBug bug>
class InsideBug final : public PlantedClusterBug {
 public:
  bool Has(PlantedBug asked) const override { return asked == bug; }
};

template <typename Plant>
std::unique_ptr<PlantedClusterBug> Make() {
  return std::make_unique<Plant>();
}

const std::map<std::string, std::unique_ptr<PlantedClusterBug> (*)()>& Plants() {
  static const auto& plants = *new std::map<std::string, std::unique_ptr<PlantedClusterBug> (*)()>{
      {"acknowledge-early", &Make<AcknowledgeEarlyBug>},
      {"answer-turns", &Make<AtPs<AnswerTurns>>},
      {"count-early", &Make<AtPs<CountEarly>>},
      {"count-one", &Make<AtWorker<CountOne>>},
      {"count-retries", &Make<AtPs<CountRetries>>},
      {"export-stale", &Make<AtPs<ExportStale>>},
      {"forget-clocks", &Make<AtPs<ForgetClocks>>},
      {"forget-contributors", &Make<ForgetContributorsBug>},
      {"forget-scales", &Make<AtWorker<ForgetScales>>},
      {"forget-waiters", &Make<AtPs<ForgetWaiters>>},
      {"inside-mark-without-hold", &Make<InsideBug<PlantedBug::kMarkWithoutHold>>},
      {"open-barriers", &Make<AtPs<OpenBarriers>>},
      {"renumber-retries", &Make<AtWorker<RenumberRetries>>},
      {"inside-commit-before-header", &Make<InsideBug<PlantedBug::kCommitBeforeHeader>>},
      {"inside-count-contributor-twice", &Make<InsideBug<PlantedBug::kCountContributorTwice>>},
      {"inside-count-twice", &Make<InsideBug<PlantedBug::kCountTwice>>},
      {"inside-fire-early", &Make<InsideBug<PlantedBug::kFireEarly>>},
      {"inside-forget-exclusion", &Make<InsideBug<PlantedBug::kForgetExclusion>>},
      {"inside-forget-clients", &Make<InsideBug<PlantedBug::kForgetClients>>},
      {"inside-ignore-sequence", &Make<InsideBug<PlantedBug::kIgnoreSequence>>}};
  return plants;
}

}  // namespace

const std::vector<std::string>& PlantedBugNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, make] : Plants()) all.push_back(name);
    return all;
  }();
  return names;
}

absl::StatusOr<std::unique_ptr<PlantedClusterBug>> MakePlantedBug(const std::string& name) {
  const auto found = Plants().find(name);
  if (found == Plants().end())
    return absl::InvalidArgumentError(
        absl::StrCat("there is no plant '", name, "'; there are ", absl::StrJoin(PlantedBugNames(), ", ")));
  return found->second();
}

}  // namespace muster
