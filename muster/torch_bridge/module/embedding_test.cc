// Compares an Embedding on the store with torch's own, alone and on two parameter servers.
#include "muster/torch_bridge/module/embedding.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/facade/training.h"
#include "muster/torch_bridge/module/module_source.h"
#include "muster/torch_bridge/module/random_state.h"
#include "muster/train/hooks/hooks.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::embedding_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

constexpr int64_t kRows = 50;
constexpr int64_t kDimension = 6;

// A program with either embedding: ids of two inputs, some of them the same.
template <typename Table>
struct NetImpl : torch::nn::Module {
  explicit NetImpl(Table table) : words(register_module("words", std::move(table))) {}
  torch::Tensor Loss(const torch::Tensor& ids) {
    const torch::Tensor mean = words(ids).mean(1) + 0.5 * words(ids.select(1, 0).contiguous().remainder(7));
    return torch::mse_loss(layer(mean), ids.to(torch::kFloat).mean(1, /*keepdim=*/true) / kRows);
  }
  Table words{nullptr};
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(kDimension, 1))};
};
using Net = NetImpl<Embedding>;
using Twin = NetImpl<torch::nn::Embedding>;

std::shared_ptr<Net> MakeNet(const EmbeddingOptions& options = {.rows = kRows, .dimension = kDimension}) {
  SeedTorch(3);
  return std::make_shared<Net>(Embedding(options));
}

torch::Tensor AllRows() { return torch::arange(kRows, torch::kInt64); }

std::vector<torch::Tensor> Minibatches(int count) {
  torch::manual_seed(7);
  std::vector<torch::Tensor> minibatches;
  for (int i = 0; i < count; ++i) minibatches.push_back(torch::randint(kRows, {8, 4}, torch::kInt64));
  return minibatches;
}

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(error.status().ToString());
  }
  return "nothing was thrown";
}

// Trains on `server`, and beside it the same net with torch's embedding and optimizer.
void ExpectTrainsAsTorch(Server& server, RowPartition partition) {
  const auto net = MakeNet({.rows = kRows, .dimension = kDimension, .partition = partition});
  SeedTorch(3);
  Twin twin(torch::nn::Embedding(kRows, kDimension));
  Replica replica(server, net);
  auto trainer = Asynchronous(replica, Sgd({.learning_rate = 0.5}));
  const auto minibatches = Minibatches(12);
  MonitoredTrainingSession session(server, {}, {StopAtStep({.last_step = 12})});
  {
    const torch::NoGradGuard no_grad;
    twin.words->weight.copy_(net->words(AllRows()));
    twin.layer->weight.copy_(net->layer->weight);
    twin.layer->bias.copy_(net->layer->bias);
    EXPECT_NEAR(twin.words->weight.std().item<double>(), 1, 0.2) << "a normal distribution";
  }
  torch::optim::SGD optimizer(twin.parameters(), 0.5);
  for (const torch::Tensor& minibatch : minibatches) {
    ASSERT_FALSE(session.ShouldStop());
    session.Run(trainer, [&] { return net->Loss(minibatch); });
    optimizer.zero_grad();
    twin.Loss(minibatch).backward();
    optimizer.step();
    const torch::NoGradGuard no_grad;
    ASSERT_TRUE(torch::allclose(net->words(AllRows()), twin.words->weight, 1e-6, 1e-6));
    ASSERT_TRUE(torch::allclose(net->layer->weight, twin.layer->weight, 1e-6, 1e-6));
  }
}

TEST(Embedding, TrainsAsTorchsInOneProcess) {
  const auto server = Server::CreateLocal();
  ExpectTrainsAsTorch(*server, RowPartition::kMod);
}

class EmbeddingOnPsTest : public ::testing::TestWithParam<RowPartition> {};

TEST_P(EmbeddingOnPsTest, TrainsAsTorchs) {
  std::vector<std::string> addresses;
  {
    // Free ports, taken from short-lived listeners.
    TcpEventLoop loop;
    StoreService nobody(loop,
                        {.files = &PosixFileSystem(), .background = [](absl::AnyInvocable<void()> task) { task(); }});
    TcpTransport transport(loop);
    std::vector<std::unique_ptr<Listener>> listeners;
    for (int i = 0; i < 2; ++i) {
      listeners.push_back(*transport.Listen("127.0.0.1:0", nobody));
      addresses.push_back(listeners.back()->address());
    }
  }
  const auto cluster = *ClusterSpec::FromLists({{"ps", addresses}, {"worker", {"127.0.0.1:1"}}});
  std::vector<std::unique_ptr<Server>> ps;
  std::vector<std::thread> serving;
  for (int i = 0; i < 2; ++i) {
    ps.push_back(std::make_unique<Server>(cluster, "ps", i));
    serving.emplace_back([&server = *ps.back()] { EXPECT_EQ(server.Join(), 0); });
  }
  {
    Server worker(cluster, "worker", 0);
    ExpectTrainsAsTorch(worker, GetParam());
  }
  for (std::thread& thread : serving) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Partitions, EmbeddingOnPsTest, ::testing::Values(RowPartition::kMod, RowPartition::kDiv),
                         [](const auto& info) { return info.param == RowPartition::kMod ? "Mod" : "Div"; });

// A source on a table in plain memory, which records what is looked up.
class SourceTest : public ::testing::Test {
 protected:
  SourceTest() {
    source_->LookUpThrough([this](size_t variable, const RowsOut& rows) {
      EXPECT_EQ(variable, 2);
      looked_up_.emplace_back(rows.indices.begin(), rows.indices.end());
      auto* value = reinterpret_cast<float*>(rows.values.data());
      for (const int64_t row : rows.indices)
        for (int64_t i = 0; i < kDimension; ++i) *value++ = static_cast<float>(row);
      return status_;
    });
  }
  absl::StatusOr<double> Compute(std::function<torch::Tensor()> loss) {
    source_->SetLoss(std::move(loss));
    return source_->ComputeGradients();
  }

  const std::shared_ptr<Net> net_ = MakeNet();
  const std::unique_ptr<ModuleSource> source_ = *ModuleSource::Create(net_);
  std::vector<std::vector<int64_t>> looked_up_;
  absl::Status status_;
};

TEST_F(SourceTest, TheTableIsAVariableWithoutMemory) {
  ASSERT_EQ(source_->variables().size(), 3);
  const VariableSpec& table = source_->variables()[2];
  EXPECT_EQ(table.name, "words.weight");
  EXPECT_EQ(table.kind, VariableKind::kRows);
  EXPECT_THAT(table.shape, ElementsAre(kRows, kDimension));
  EXPECT_TRUE(source_->value(2).empty());
  EXPECT_TRUE(source_->gradient(2).empty());
}

TEST_F(SourceTest, AStepLooksEachRowUpOnceAndSumsItsGradients) {
  const auto loss = Compute([&] {
    const torch::Tensor first = net_->words(torch::tensor({{5, 9}, {5, 5}}, torch::kInt64));
    EXPECT_THAT(first.sizes().vec(), ElementsAre(2, 2, kDimension));
    const torch::Tensor second = net_->words(torch::tensor({9, 2}, torch::kInt64));
    const torch::Tensor known = net_->words(torch::tensor({2}, torch::kInt64));
    const torch::Tensor unused = net_->words(torch::tensor({30}, torch::kInt64));
    EXPECT_TRUE(unused.requires_grad());
    return first.sum() + 10 * second.sum() + 100 * known.sum();
  });
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, kDimension * (5 * 3 + 9 + 10 * (9 + 2) + 100 * 2));
  EXPECT_THAT(looked_up_, ElementsAre(ElementsAre(5, 9), ElementsAre(2), ElementsAre(30)));
  ASSERT_EQ(source_->row_gradients().size(), 1);
  const RowsIn& rows = source_->row_gradients()[0].rows;
  EXPECT_EQ(source_->row_gradients()[0].variable, 2);
  EXPECT_THAT(std::vector<int64_t>(rows.indices.begin(), rows.indices.end()), ElementsAre(5, 9, 2));
  const auto* gradient = reinterpret_cast<const float*>(rows.values.data());
  EXPECT_EQ(rows.values.size(), 3 * kDimension * sizeof(float));
  EXPECT_EQ(gradient[0], 3);
  EXPECT_EQ(gradient[kDimension], 11);
  EXPECT_EQ(gradient[3 * kDimension - 1], 110);
}

TEST_F(SourceTest, WithoutGradientsNothingIsKeptOrPushed) {
  const auto loss = Compute([&] {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(net_->words(torch::tensor({5}, torch::kInt64)).requires_grad());
    const torch::AutoGradMode grad(true);
    return net_->layer(torch::ones({1, kDimension})).sum();
  });
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_TRUE(source_->row_gradients().empty());
  EXPECT_FALSE(net_->words(AllRows()).requires_grad()) << "outside of a step";
  EXPECT_THAT(net_->words(torch::empty({0, 3}, torch::kInt64)).sizes().vec(), ElementsAre(0, 3, kDimension));
  EXPECT_EQ(looked_up_.size(), 2);
}

TEST_F(SourceTest, WhatALookUpSaysIsWhatTheStepSays) {
  status_ = absl::AbortedError("ps:1 was restarted");
  EXPECT_EQ(Compute([&] { return net_->words(AllRows()).sum(); }).status(), status_);
  EXPECT_TRUE(source_->row_gradients().empty());
  status_ = absl::OkStatus();
  EXPECT_TRUE(Compute([&] { return net_->words(AllRows()).sum(); }).ok());
  EXPECT_EQ(source_->row_gradients().size(), 1);
}

TEST_F(SourceTest, IdsThatCannotBeMeantAreRefused) {
  const auto ask = [&](const torch::Tensor& ids) { return MessageOf([&] { net_->words(ids); }); };
  EXPECT_THAT(ask(torch::tensor({3, 50}, torch::kInt64)),
              HasSubstr("row 50 is out of range: embedding 'words.weight' has 50 rows"));
  EXPECT_THAT(ask(torch::tensor({-1}, torch::kInt64)), HasSubstr("row -1 is out of range"));
  EXPECT_THAT(ask(torch::tensor({3}, torch::kInt32)),
              AllOf(HasSubstr("'words.weight' was given ids of type Int"), HasSubstr("accepted: int64")));
  EXPECT_THAT(ask(torch::tensor({3.5})), HasSubstr("of type Float"));
  EXPECT_TRUE(absl::IsInvalidArgument(Compute([&] { return net_->words(AllRows() + 1).sum(); }).status()));
  EXPECT_TRUE(looked_up_.empty());
  EXPECT_THAT(MessageOf([] { Embedding({.rows = 0, .dimension = 3}); }), HasSubstr("0 rows of dimension 3"));
}

TEST(Embedding, WithoutASessionItSaysWhatIsMissing) {
  const auto net = MakeNet();
  EXPECT_THAT(MessageOf([&] { net->words(AllRows()); }), HasSubstr("make a Replica of the module"));
}

TEST(Embedding, ASynchronousTrainerIsRefused) {
  const auto server = Server::CreateLocal();
  const auto net = MakeNet();
  Replica replica(*server, net);
  auto trainer = Synchronous(replica, Sgd(), {});
  EXPECT_THAT(MessageOf([&] { MonitoredTrainingSession(*server, {}); }),
              AllOf(HasSubstr("'words.weight' is a table of rows"), HasSubstr("train it asynchronously")));
}

// A checkpoint restores the whole table, for training and for an evaluator.
TEST(Embedding, IsInCheckpoints) {
  const ScratchFolder scratch;
  const auto minibatches = Minibatches(6);
  std::vector<torch::Tensor> tables;
  for (const int64_t until : {3, 6}) {
    const auto server = Server::CreateLocal();
    const auto net = MakeNet();
    Replica replica(*server, net);
    auto trainer = Asynchronous(replica, Adam({.learning_rate = 0.1}));
    MonitoredTrainingSession session(*server, {.checkpoint_dir = scratch.path()}, {StopAtStep({.last_step = until})});
    tables.push_back(net->words(AllRows()));
    while (!session.ShouldStop()) session.Run(trainer, [&] { return net->Loss(minibatches[session.global_step()]); });
    tables.push_back(net->words(AllRows()));
  }
  EXPECT_FALSE(torch::equal(tables[0], tables[1]));
  EXPECT_TRUE(torch::equal(tables[1], tables[2])) << "restored";
  EXPECT_FALSE(torch::equal(tables[2], tables[3]));
  const auto latest = LatestCheckpoint(PosixFileSystem(), scratch.path());
  ASSERT_TRUE(latest.ok() && *latest);
  const auto checkpoint = CheckpointReader::Open(PosixFileSystem(), **latest).value();
  const auto server = Server::CreateLocal();
  const auto net = MakeNet();
  Replica replica(*server, net);
  replica.Load(*checkpoint);
  EXPECT_TRUE(torch::equal(tables[3], net->words(AllRows())));
}

}  // namespace
}  // namespace muster::embedding_test
