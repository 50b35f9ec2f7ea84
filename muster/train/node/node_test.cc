#include "muster/train/node/node.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/all_reduce.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/log.h"
#include "muster/base/os/flush_denormals.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"
#include "muster/train/hooks/hooks.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "muster/transport/testing/scripted_handler.h"

namespace muster::node_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {20}}, {.name = "b"}};

TaskConfig Task(const std::string& cluster, const std::string& type, int index) {
  return ResolveTaskConfig({.tf_config = absl::StrCat("{\"cluster\": ", cluster, ", \"task\": {\"type\": \"", type,
                                                      "\", \"index\": ", index, "}}")})
      .value();
}

// Trains one process alone until `last_step`; returns the global step at which it ended.
int64_t TrainAlone(QuadraticSource& source, const SessionOptions& options, int64_t last_step) {
  const auto node = Node::Create(TaskConfig(), {}).value();
  AsynchronousAlgorithm algorithm(source, *PlaceVariables(kVariables, node->num_ps(), Placement::kGreedyBySize, {}),
                                  RuleSpec{.learning_rate = 0.1});
  node->SetAlgorithm(&algorithm);
  auto environment = node->MakeSessionEnvironment().value();
  Session session(environment, options, {StopAtStep({.last_step = last_step})});
  EXPECT_TRUE(session.is_chief());
  EXPECT_EQ(session.Start(), absl::OkStatus());
  while (!session.ShouldStop()) EXPECT_EQ(session.Run(), absl::OkStatus());
  const auto pages = node->PsStatus().value();
  EXPECT_EQ(nlohmann::json::parse(pages.at(0))["global_step"], session.global_step());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  return session.global_step();
}

#if defined(__x86_64__)
// Runs on a thread of its own, because the mode stays set.
TEST(NodeTest, TakesTheSmallestNumbersForZeroUnlessTold) {
  std::thread([] {
    _mm_setcsr(0x1f80);  // as when a process starts: a thread inherits what earlier tests have left
    ASSERT_TRUE(Node::Create(TaskConfig(), {.flush_denormals = false}).ok());
    EXPECT_FALSE(FlushesDenormals());
    ASSERT_TRUE(Node::Create(TaskConfig(), {}).ok());
    EXPECT_TRUE(FlushesDenormals());
  }).join();
}
#endif

TEST(NodeTest, OneProcessAloneTrains) {
  QuadraticSource source(kVariables);
  EXPECT_EQ(TrainAlone(source, {}, 200), 200);
  EXPECT_EQ(source.steps, 200);
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(source.values(0)[i], QuadraticSource::Optimum(i), 1e-3);
}

TEST(NodeTest, OneProcessAloneSavesAndGoesOn) {
  const ScratchFolder scratch;
  const SessionOptions options = {.checkpoint_dir = scratch.path(), .save_checkpoint_steps = 10};
  QuadraticSource first(kVariables);
  EXPECT_EQ(TrainAlone(first, options, 15), 15);
  QuadraticSource second(kVariables);
  EXPECT_EQ(TrainAlone(second, options, 20), 20);
  EXPECT_EQ(second.steps, 5);
  QuadraticSource undisturbed(kVariables);
  TrainAlone(undisturbed, {}, 20);
  EXPECT_EQ(second.values(0), undisturbed.values(0));
}

// Trains on at most `units` units of 9 rows in units of 2; returns the first row of each.
std::vector<int64_t> TrainOnShares(const std::string& directory, size_t units) {
  std::vector<int64_t> begins;
  QuadraticSource source(kVariables);
  const auto node = *Node::Create(TaskConfig(), {});
  AsynchronousAlgorithm algorithm(source, *PlaceVariables(kVariables, node->num_ps(), Placement::kGreedyBySize, {}),
                                  RuleSpec{.learning_rate = 0.1});
  node->SetAlgorithm(&algorithm);
  const auto work = node->OpenWorkQueue("rows", {.rows = 9, .rows_per_unit = 2}).value();
  Session session(*node->MakeSessionEnvironment(), {.checkpoint_dir = directory}, {});
  EXPECT_EQ(session.Start(), absl::OkStatus());
  while (begins.size() < units) {
    const auto unit = work->Take().value();
    if (!unit) break;
    EXPECT_TRUE(work->Begin());
    EXPECT_EQ(session.Run(), absl::OkStatus());
    EXPECT_EQ(work->Done(), absl::OkStatus());
    begins.push_back(unit->begin);
  }
  // A unit that is prepared but never trained on.
  if (units < 5) {
    EXPECT_TRUE(work->Take().ok());
  }
  EXPECT_EQ(session.Close(), absl::OkStatus());
  return begins;
}

TEST(NodeTest, OneProcessAloneGoesOnWithTheWorkThatItsCheckpointHasNotGot) {
  const ScratchFolder scratch;
  EXPECT_THAT(TrainOnShares(scratch.path(), 3), ElementsAre(0, 2, 4));
  EXPECT_THAT(TrainOnShares(scratch.path(), 9), ElementsAre(6, 8));
  EXPECT_THAT(TrainOnShares(scratch.path(), 9), IsEmpty());
}

TEST(NodeTest, WhoCannotShareIsTold) {
  const WorkQueueOptions options = {.rows = 9, .rows_per_unit = 2};
  const auto why = [&](Node& node, const WorkQueueOptions& what) { return node.OpenWorkQueue("rows", what).status(); };
  const auto alone = *Node::Create(TaskConfig(), {});
  EXPECT_TRUE(absl::IsInvalidArgument(why(*alone, {.rows = 0, .rows_per_unit = 2})));
  EXPECT_EQ(why(*alone, options), absl::OkStatus());
  EXPECT_THAT(why(*alone, options).message(), HasSubstr("a job has one"));
  const absl::Status no_ps = why(**Node::Create(Task(R"({"worker": ["h:1", "h:2"]})", "worker", 1), {}), options);
  EXPECT_TRUE(IsWrongConfiguration(no_ps)) << no_ps;
  EXPECT_THAT(no_ps.message(), HasSubstr("Dataset::Shard"));
  const absl::Status evaluator =
      why(**Node::Create(Task(R"({"chief": ["h:1"], "ps": ["h:2"]})", "evaluator", 0), {}), options);
  EXPECT_TRUE(absl::IsFailedPrecondition(evaluator)) << evaluator;
}

TEST(NodeTest, WhatItSaysOfItself) {
  const auto alone = *Node::Create(TaskConfig(), {});
  EXPECT_EQ(alone->Target(), "");
  const auto only = *Node::Create(Task(R"({"worker": ["h:1"]})", "worker", 0), {});
  EXPECT_EQ(only->Target(), "muster://h:1") << "a cluster of one task is one";
  EXPECT_EQ(alone->num_ps(), 1);
  EXPECT_THAT(alone->Devices(), ElementsAre("/job:worker/replica:0/task:0/device:CPU:0"));
  EXPECT_TRUE(absl::IsFailedPrecondition(alone->Join())) << "only a ps serves";
  const auto worker =
      *Node::Create(Task(R"({"worker": ["h:1", "h:2"], "ps": ["h:3", "h:4", "h:5"]})", "worker", 1), {});
  EXPECT_EQ(worker->Target(), "muster://h:2");
  EXPECT_EQ(worker->num_ps(), 3);
}

TEST(NodeTest, WhereItComputesIsTheOptionsThenTheTasksThenTheCpu) {
  EXPECT_EQ((*Node::Create(TaskConfig(), {}))->asked_device(), ComputeDevice());
  std::vector<std::string> flag = {"--device=cuda:2"};
  const TaskConfig task = *TaskConfig::FromArguments(flag, {});
  EXPECT_EQ((*Node::Create(task, {}))->asked_device(), (ComputeDevice{true, 2}));
  EXPECT_EQ((*Node::Create(task, {.device = ComputeDevice()}))->asked_device(), ComputeDevice());
}

TEST(NodeTest, ItsSessionKnowsWhereThingsAre) {
  QuadraticSource source(kVariables);
  const auto node =
      *Node::Create(Task(R"({"worker": ["h:1", "h:2"], "ps": {"1": "h:3", "4": "h:4"}})", "worker", 1), {});
  AsynchronousAlgorithm algorithm(source, *PlaceVariables(kVariables, 2, Placement::kRoundRobin, {}), RuleSpec());
  node->SetAlgorithm(&algorithm);
  node->ComputeOn({true, 1});
  EXPECT_THAT(node->Devices(),
              ElementsAre("/job:worker/replica:0/task:1/device:CPU:0", "/job:worker/replica:0/task:1/device:GPU:1"));
  const auto environment = node->MakeSessionEnvironment().value();
  EXPECT_EQ(environment.place.task, (TaskId{"worker", 1}));
  EXPECT_EQ(environment.place.device, (ComputeDevice{true, 1}));
  EXPECT_THAT(environment.place.ps, ElementsAre(TaskId{"ps", 1}, TaskId{"ps", 4}));
  EXPECT_THAT(environment.place.peers, IsEmpty());
}

TEST(NodeTest, AnAllReducesSessionKnowsItsPeers) {
  QuadraticSource source(kVariables);
  const auto node = *Node::Create(Task(R"({"chief": ["h:1"], "worker": ["h:2"]})", "worker", 0), {});
  AllReduceAlgorithm algorithm(source, *PlaceVariables(kVariables, 1, Placement::kRoundRobin, {}), RuleSpec(), nullptr);
  node->SetAlgorithm(&algorithm);
  const auto environment = node->MakeSessionEnvironment().value();
  EXPECT_THAT(environment.place.peers, ElementsAre(TaskId{"chief", 0}, TaskId{"worker", 0}));
  EXPECT_THAT(environment.place.ps, IsEmpty());
}

TEST(NodeTest, APsSaysThatAGpuIsNotForIt) {
  std::string address;
  {
    TcpEventLoop loop;
    TcpTransport transport(loop);
    ScriptedHandler handler;
    address = (*transport.Listen("127.0.0.1:0", handler))->address();  // the port is free from here on
  }
  const TaskConfig ps = Task(absl::StrCat(R"({"worker": ["127.0.0.1:1"], "ps": [")", address, R"("]})"), "ps", 0);
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  const auto node = Node::Create(ps, {.device = ComputeDevice{true, 0}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a ps never touches a GPU: cuda:0"));
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_THAT((*node)->Devices(), ElementsAre("/job:ps/replica:0/task:0/device:CPU:0"));
}

TEST(NodeTest, WhoCannotTrainIsTold) {
  const auto why = [](Node& node) {
    const auto environment = node.MakeSessionEnvironment();
    EXPECT_TRUE(absl::IsFailedPrecondition(environment.status())) << environment.status();
    return std::string(environment.status().message());
  };
  EXPECT_THAT(why(**Node::Create(TaskConfig(), {})), HasSubstr("create the trainer"));
  EXPECT_THAT(why(**Node::Create(Task(R"({"worker": ["h:1", "h:2"]})", "worker", 1), {})),
              HasSubstr("create the trainer"));
  EXPECT_THAT(why(**Node::Create(Task(R"({"chief": ["h:1"], "ps": ["h:2"]})", "evaluator", 0), {})),
              AllOf(HasSubstr("evaluator:0 does not train"), HasSubstr("task.is_evaluator()")));
}

TEST(NodeTest, AServerHasOneSession) {
  QuadraticSource source(kVariables);
  const auto node = *Node::Create(TaskConfig(), {});
  AsynchronousAlgorithm algorithm(source, *PlaceVariables(kVariables, node->num_ps(), Placement::kGreedyBySize, {}),
                                  RuleSpec{.learning_rate = 0.1});
  node->SetAlgorithm(&algorithm);
  {
    Session left(*node->MakeSessionEnvironment(), {}, {});
    const absl::Status open = node->MakeSessionEnvironment().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(open)) << open;
    EXPECT_THAT(open.message(), HasSubstr("it is still open. One session per server"));
    ASSERT_EQ(left.Start(), absl::OkStatus());
    ASSERT_EQ(left.Run(), absl::OkStatus());
  }
  // A session that an error ended may have a successor.
  {
    Session closed(*node->MakeSessionEnvironment(), {}, {});
    ASSERT_EQ(closed.Start(), absl::OkStatus());
    ASSERT_EQ(closed.Run(), absl::OkStatus());
    EXPECT_EQ(closed.global_step(), 2);
    ASSERT_EQ(closed.Close(), absl::OkStatus());
  }
  const absl::Status ended = node->MakeSessionEnvironment().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
  EXPECT_THAT(ended.message(), HasSubstr("training of this job has ended with it"));
  EXPECT_THAT(ended.message(), HasSubstr("make another Server"));
}

TEST(NodeTest, WhoAsksForTcpHasItsUpdatesSentUnlessItInsists) {
  const auto apply = [](const TaskConfig& task, const NodeOptions& options) {
    QuadraticSource source(kVariables);
    const auto node = *Node::Create(task, options);
    AsynchronousAlgorithm algorithm(source, *PlaceVariables(kVariables, node->num_ps(), Placement::kGreedyBySize, {}),
                                    RuleSpec());
    node->SetAlgorithm(&algorithm);
    return node->MakeSessionEnvironment()->client->ps_calls().options().apply;
  };
  const TaskConfig worker = Task(R"({"worker": ["h:1"], "ps": ["h:2"]})", "worker", 0);
  EXPECT_EQ(apply(worker, {}), ApplyChoice::kAuto);
  EXPECT_EQ(apply(worker, {.transport = TransportChoice::kTcp}), ApplyChoice::kServer);
  EXPECT_EQ(apply(worker, {.apply = ApplyChoice::kDirect, .transport = TransportChoice::kTcp}), ApplyChoice::kDirect);
  EXPECT_EQ(apply(TaskConfig(), {.transport = TransportChoice::kTcp}), ApplyChoice::kAuto) << "it has its own store";
}

TEST(NodeTest, APortInUseIsNamed) {
  TcpEventLoop loop;
  TcpTransport transport(loop);
  ScriptedHandler handler;
  const auto listener = transport.Listen("127.0.0.1:0", handler).value();
  const std::string address = listener->address();
  const auto node =
      Node::Create(Task(absl::StrCat(R"({"worker": ["127.0.0.1:1"], "ps": [")", address, R"("]})"), "ps", 0), {});
  EXPECT_TRUE(absl::IsAlreadyExists(node.status())) << node.status();
  EXPECT_THAT(node.status().message(), HasSubstr(address));
}

}  // namespace
}  // namespace muster::node_test
