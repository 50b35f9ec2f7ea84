// One worker of a simulated cluster, for tests: a quadratic model, its algorithm, its client, and what a session needs.
// Its updates can take every route to the ps (store/testing/update_way.h).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/pipelined.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/store/messages/load_messages.h"
#include "muster/store/messages/messages.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/store/testing/update_way.h"
#include "muster/train/session/session.h"

namespace muster {

struct TrainingOptions {
  std::vector<VariableSpec> variables = {{.name = "w", .shape = {3}}, {.name = "b", .shape = {2}}};
  RuleSpec rule = {.learning_rate = 0.1};
  Placement placement = Placement::kRoundRobin;
  Partitioning partitioning;
  FileSystem* files = nullptr;    // this process's disk; null: the store's
  FaultScript* faults = nullptr;  // for its requests; must outlive the process
  UpdateWay way = {};             // kDirectly requires that the store shares its memory
};

// Pipelined pushes are made within the step: a simulated loop can't have another thread.
inline std::unique_ptr<Algorithm> MakeAlgorithm(GradientSource& source, const TrainingOptions& options, int num_ps) {
  PlacementResult placement = *PlaceVariables(options.variables, num_ps, options.placement, options.partitioning);
  if (options.way.pipelined())
    return std::make_unique<PipelinedAlgorithm>(source, std::move(placement), options.rule,
                                                PipelinedOptions{.thread = false});
  return std::make_unique<AsynchronousAlgorithm>(source, std::move(placement), options.rule);
}

class TrainingProcess {
 public:
  // `store` must outlive it.
  TrainingProcess(SimulatedStore& store, const std::string& task, const TrainingOptions& options = {})
      : source(options.variables),
        algorithm(MakeAlgorithm(source, options, static_cast<int>(store.addresses().size()))),
        client(options.faults != nullptr ? store.Client(task, *options.faults, ClientOptions(options.way))
                                         : store.Client(task, ClientOptions(options.way))),
        files(options.files != nullptr ? *options.files : store.files),
        store_(store),
        is_chief_(task == "chief:0") {}

  SessionEnvironment Environment() {
    return {.client = client.get(),
            .algorithm = algorithm.get(),
            .loop = &store_.loop,
            .files = &files,
            .clock = &store_.clock,
            .is_chief = is_chief_,
            .target = "muster://here:1",
            .stop_requested = [this] { return stop; },
            .leaves_on_signal = leaves_on_signal,
            .on_joined = [this] { ++joined; }};
  }
  Session MakeSession(SessionOptions options = {}, std::vector<std::shared_ptr<SessionHook>> hooks = {}) {
    return Session(Environment(), std::move(options), std::move(hooks));
  }

  // Without a session: the chief gives its values to the ps.
  void StartAsChief() {
    EXPECT_EQ(client->Join(true), absl::OkStatus());
    client->Bind(algorithm->binding());
    EXPECT_EQ(client->Initialize(0, 0, nullptr), absl::OkStatus());
    EXPECT_EQ(client->Pull(PullWhat::kEverything), absl::OkStatus());
  }
  int64_t Step() {
    const auto result = algorithm->Step(*client);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->global_step : -1;
  }

  QuadraticSource source;
  const std::unique_ptr<Algorithm> algorithm;
  std::unique_ptr<StoreClient> client;
  FileSystem& files;
  bool stop = false;  // set as a signal would
  bool leaves_on_signal = false;
  int joined = 0;  // how often on_joined was called

 private:
  StoreClientOptions ClientOptions(const UpdateWay& way) {
    return {.stop_requested = [this] { return stop; }, .apply = way.apply, .part_bytes = way.part_bytes()};
  }

  SimulatedStore& store_;
  const bool is_chief_;
};

// `muster checkpoint load`, from outside the cluster. The answer arrives when the test next waits on the store's loop.
class LoadCommand {
 public:
  // `store` must outlive it.
  LoadCommand(SimulatedStore& store, const std::string& path)
      : transport_(store.network, store.loop), channel_(transport_.Connect(store.addresses()[0])) {
    channel_->Call(
        {.method = static_cast<uint16_t>(StoreMethod::kLoadCheckpoint), .control = Encode(LoadCheckpointRequest{path})},
        [this](const absl::StatusOr<Reply>& reply) {
          LoadCheckpointReply decoded;
          absl::Status status = reply.status();
          if (status.ok()) status = Decode(reply->control, decoded);
          answer_ = status.ok() ? absl::StatusOr<LoadCheckpointReply>(decoded) : status;
        });
    store.Pass(absl::Milliseconds(1));
  }
  // No value yet: the chief hasn't answered.
  const std::optional<absl::StatusOr<LoadCheckpointReply>>& answer() const { return answer_; }

 private:
  std::optional<absl::StatusOr<LoadCheckpointReply>> answer_;
  SimulatedTransport transport_;
  std::unique_ptr<Channel> channel_;  // must be destroyed first, so that nothing calls back later
};

}  // namespace muster
