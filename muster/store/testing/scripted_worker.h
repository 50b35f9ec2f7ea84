// A worker for tests whose requests don't block: it pushes, and the test checks later whether the answer is there.
// Several of them on one simulated loop can wait for each other, in whatever order the test wants.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "muster/store/testing/simulated_store.h"

namespace muster {

class ScriptedWorker {
 public:
  struct Answer {
    bool there = false;
    absl::Status status;
    PushPullReply reply;
    std::vector<std::byte> values;

    bool ok() const { return there && status.ok(); }
    bool lost() const { return there && !status.ok(); }
    float first() const {
      float value = 0;
      std::memcpy(&value, values.data(), sizeof value);
      return value;
    }
  };
  using Pending = std::shared_ptr<Answer>;

  // Joins; the chief also initialises, at `global_step`. `model` must outlive the worker.
  ScriptedWorker(SimulatedStore& store, const std::string& task, WorkerModel& model, bool chief = false,
                 int64_t global_step = 0)
      : transport_(store.network, store.loop), client_(store.Client(task)) {
    MUSTER_CHECK(client_->Join(chief).ok());
    client_->Bind(model.binding);
    if (chief) MUSTER_CHECK(client_->Initialize(global_step, 0, nullptr).ok());
    for (const std::string& address : store.addresses()) channels_.push_back(transport_.Connect(address));
  }

  // Returns the message for a push of every slice, for the test to change. Takes the next number.
  PushPullRequest Message(int ps = 0) {
    PushPullRequest message{.stamp = client_->MakeStamp(ps, 0), .pull = PullWhat::kTrainable, .generation = 1};
    message.stamp.sequence = ++sequence;
    message.minibatches = ps == 0 ? 1 : 0;
    for (size_t i = 0; i < client_->ModelOf(ps).slices.size(); ++i) message.pushed.push_back(static_cast<uint32_t>(i));
    return message;
  }
  Pending Contribute(double gradient, uint64_t local_step, int ps = 0) {
    PushPullRequest message = Message(ps);
    message.contributes = true;
    message.local_step = local_step;
    return Send(message, gradient, ps);
  }
  Pending Tick(uint64_t clock) {
    PushPullRequest message = Message();
    message.clock = clock;
    return Send(message, 1, 0);
  }
  Pending Send(const PushPullRequest& message, double gradient, int ps = 0) {
    const StoreModel model = client_->ModelOf(ps);
    auto bulk = std::make_shared<std::vector<std::byte>>();
    for (const uint32_t slice : message.pushed) Append(*bulk, model, model.slices[slice], gradient);
    auto answer = std::make_shared<Answer>();
    size_t pulled = 0;
    for (const PlacedSlice& slice : model.slices)
      if (model.variable(slice).kind == VariableKind::kTrainable) pulled += slice.bytes;
    answer->values.resize(pulled);
    channels_[ps]->Call({.method = static_cast<uint16_t>(StoreMethod::kPushPull),
                         .control = Encode(message),
                         .bulk = {*bulk},
                         .into = {answer->values}},
                        [answer, bulk](absl::StatusOr<Reply> reply) {
                          answer->there = true;
                          answer->status = reply.status();
                          if (reply.ok()) answer->status = Decode(reply->control, answer->reply);
                        });
    return answer;
  }
  Pending Barrier(const std::string& name, uint32_t parties, bool elastic = false) {
    BarrierRequest message{client_->MakeStamp(0, 0), name, parties, elastic};
    message.stamp.sequence = ++sequence;
    return Send(message);
  }
  Pending Send(const BarrierRequest& message) {
    auto answer = std::make_shared<Answer>();
    channels_[0]->Call({.method = static_cast<uint16_t>(StoreMethod::kBarrier), .control = Encode(message)},
                       [answer](absl::StatusOr<Reply> reply) {
                         answer->there = true;
                         answer->status = reply.status();
                       });
    return answer;
  }
  // Asks for a turn as a process that knows of `clock` pushes of its own and of the round `local_step`. The answer's
  // clock is in `reply`.
  Pending AwaitTurn(uint64_t clock = 0, uint64_t local_step = 0, int ps = 0) {
    return Send(AwaitTurnRequest{client_->MakeStamp(ps, 0), 1, clock, local_step}, ps);
  }
  Pending Send(const AwaitTurnRequest& message, int ps = 0) {
    auto answer = std::make_shared<Answer>();
    channels_[ps]->Call({.method = static_cast<uint16_t>(StoreMethod::kAwaitTurn), .control = Encode(message)},
                        [answer](absl::StatusOr<Reply> reply) {
                          answer->there = true;
                          AwaitTurnReply turn;
                          answer->status = reply.ok() ? Decode(reply->control, turn) : reply.status();
                          answer->reply.clock = turn.clock;
                        });
    return answer;
  }
  // Acts as a link that breaks; the test must send unanswered requests again.
  void BreakConnection(SimulatedStore& store, int ps = 0) { channels_[ps] = transport_.Connect(store.addresses()[ps]); }

  StoreClient& client() { return *client_; }
  uint64_t sequence = 0;

 private:
  static void Append(std::vector<std::byte>& bulk, const StoreModel& model, const PlacedSlice& slice, double gradient) {
    const auto add = [&](auto element) {
      for (int64_t i = 0; i < slice.elements; ++i) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&element);
        bulk.insert(bulk.end(), bytes, bytes + sizeof element);
      }
    };
    model.variable(slice).dtype == DType::kFloat64 ? add(gradient) : add(static_cast<float>(gradient));
  }

  SimulatedTransport transport_;
  std::unique_ptr<StoreClient> client_;
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace muster
