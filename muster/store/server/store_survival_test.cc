// A ps that is killed and started again on the memory that its supervisor kept: whenever that happens, the run ends as
// it would have undisturbed. And a ps that comes back with nothing.
#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/status_macros.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/store/testing/update_way.h"
#include "muster/store/testing/update_way_push.h"

namespace muster::store_survival_test {
namespace {

using ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {40, 1000}},
                                              {.name = "b", .dtype = DType::kFloat64, .shape = {7}},
                                              {.name = "mean", .shape = {6}, .kind = VariableKind::kBuffer}};
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};
const RuleSpec kAdam = {.kind = RuleKind::kAdam};
constexpr int kSteps = 5;

// Restarts ps `ps` before operation number `at`. (Before there is a model there is nothing to survive.)
struct Kill {
  int ps = 0;
  uint64_t at = 0;  // 0: never
};

struct Outcome {
  absl::Status status;
  std::vector<PartSnapshot> parts;
  std::vector<nlohmann::json> status_pages;
  int64_t global_step = 0;
  uint64_t operations = 0;
};

class Training {
 public:
  Training(const UpdateWay& way, const Kill& kill) : way_(way), kill_(kill) { model_.Fill(7); }

  Outcome Train() {
    Outcome outcome;
    outcome.status = TrainAll();
    outcome.operations = operations_;
    if (!outcome.status.ok()) return outcome;
    for (int ps = 0; ps < 2; ++ps) {
      outcome.parts.push_back(store_.Snapshot(ps));
      outcome.status_pages.push_back(nlohmann::json::parse(StatusJson(store_.service(ps).MakeView())));
    }
    outcome.global_step = chief_->ReadGlobalStep().value_or(-1);
    return outcome;
  }

 private:
  void MaybeKill() {
    if (++operations_ != kill_.at) return;
    store_.KillPs(kill_.ps);
    store_.loop.CallAt(store_.loop.Now() + absl::Milliseconds(300), [this] { store_.StartPs(kill_.ps); });
  }
  absl::Status TrainAll() {
    RETURN_IF_ERROR(chief_->Join(true));
    chief_->Bind(model_.binding);
    RETURN_IF_ERROR(chief_->Initialize(0, 0, nullptr));
    MaybeKill();
    RETURN_IF_ERROR(worker_->Join(false));
    worker_->Bind(copy_.binding);
    RETURN_IF_ERROR(chief_->AwaitReady(absl::InfiniteFuture()).status());
    RETURN_IF_ERROR(worker_->AwaitReady(absl::InfiniteFuture()).status());
    for (int step = 0; step < kSteps; ++step) {
      MaybeKill();
      gradients_.Fill(step);
      const auto gradient = [&](size_t i) { return ByteSpan(gradients_.memory[i]); };
      StoreClient& client = step % 2 == 0 ? *chief_ : *worker_;
      RETURN_IF_ERROR(PushBy(way_, client, gradient, step % 2 == 0).status());
    }
    MaybeKill();
    return chief_->Pull(PullWhat::kTrainable);
  }

  const UpdateWay way_;
  const Kill kill_;
  const StoreClientOptions options_ = {.apply = way_.apply, .part_bytes = way_.part_bytes()};
  SimulatedStore store_{2, kTasks, kUnrenewedLease, nullptr, way_.direct()};
  WorkerModel model_{kVariables, kAdam, 2};
  WorkerModel copy_{kVariables, kAdam, 2};
  WorkerModel gradients_{kVariables, kAdam, 2};
  std::unique_ptr<StoreClient> chief_ = store_.Client("chief:0", options_);
  std::unique_ptr<StoreClient> worker_ = store_.Client("worker:0", options_);
  uint64_t operations_ = 0;
};

class StoreSurvivalTest : public ::testing::TestWithParam<UpdateWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, StoreSurvivalTest, ::testing::ValuesIn(kStoreWays), NameOfWay);

TEST_P(StoreSurvivalTest, WheneverAPsIsRestartedNothingIsLostOrDoneTwice) {
  const Outcome undisturbed = Training(GetParam(), {}).Train();
  ASSERT_EQ(undisturbed.status, absl::OkStatus());
  ASSERT_EQ(undisturbed.global_step, kSteps);
  for (int ps = 0; ps < 2; ++ps) {
    for (uint64_t at = 1; at <= undisturbed.operations; ++at) {
      SCOPED_TRACE(testing::Message() << "ps:" << ps << " killed before operation " << at);
      const Outcome outcome = Training(GetParam(), {ps, at}).Train();
      ASSERT_EQ(outcome.status, absl::OkStatus());
      EXPECT_EQ(outcome.global_step, kSteps);
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(outcome.parts[i].bytes == undisturbed.parts[i].bytes) << "values and slots of ps:" << i;
        EXPECT_EQ(outcome.parts[i].steps, undisturbed.parts[i].steps);
        EXPECT_EQ(outcome.status_pages[i]["version"], undisturbed.status_pages[i]["version"]);
        EXPECT_EQ(outcome.status_pages[i]["minibatches"], undisturbed.status_pages[i]["minibatches"]);
      }
    }
  }
}

// Independent of the way that updates go: there are none.
TEST(RestartedPsTest, KnowsItsClientsTheChiefAndWhoIsDone) {
  SimulatedStore store(1, kTasks);
  WorkerModel model(kVariables, kAdam, 1);
  auto chief = store.Client("chief:0");
  auto worker = store.Client("worker:0");
  ASSERT_EQ(chief->Join(true), absl::OkStatus());
  chief->Bind(model.binding);
  ASSERT_EQ(chief->Initialize(0, 0, nullptr), absl::OkStatus());
  ASSERT_EQ(worker->Join(false), absl::OkStatus());
  EXPECT_EQ(worker->Done(), absl::OkStatus());
  store.KillPs(0);
  store.StartPs(0);
  const auto page = nlohmann::json::parse(StatusJson(store.service(0).MakeView()));
  EXPECT_EQ(page["state"], "ready");
  EXPECT_EQ(page["chief"]["task"], "chief:0");
  EXPECT_EQ(page["clients"][1]["state"], "done");
  auto second = store.Client("worker:0");
  EXPECT_EQ(second->Join(false), absl::OkStatus()) << "a client that is done may come again";
  const absl::Status refused = second->Join(true);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("chief:0"));
  EXPECT_EQ(second->Done(), absl::OkStatus());
  EXPECT_EQ(chief->Done(), absl::OkStatus());
  store.Pass(absl::Seconds(1));
  EXPECT_TRUE(store.service(0).finished());
}

TEST(RestartedPsTest, RemembersTheEndToo) {
  SimulatedStore store(1, kTasks);
  WorkerModel model(kVariables, kAdam, 1);
  auto chief = store.Client("chief:0");
  ASSERT_EQ(chief->Join(true), absl::OkStatus());
  chief->Bind(model.binding);
  ASSERT_EQ(chief->Initialize(0, 0, nullptr), absl::OkStatus());
  store.service(0).Shutdown("enough");
  store.KillPs(0);
  store.StartPs(0);
  auto late = store.Client("worker:0");
  EXPECT_EQ(late->Join(false), absl::OkStatus());
  EXPECT_TRUE(late->ended());
}

TEST(RestartedPsTest, RefusesMemoryOfAnotherJob) {
  auto memory = *ArenaMemory::Create();
  ASSERT_TRUE(Arena::Create(ModelOn(kVariables, kAdam), 3, *ArenaMemory::Adopt(memory->fd())).ok());
  EXPECT_TRUE(absl::IsNotFound(Arena::Attach(*ArenaMemory::Adopt(memory->fd()), 3).status())) << "never loaded";
  auto arena = *Arena::Create(ModelOn(kVariables, kAdam), 3, *ArenaMemory::Adopt(memory->fd()));
  const std::vector<std::byte> values(arena->layout().value_bytes());
  arena->Load({.generation = 1, .values = values});
  EXPECT_TRUE(Arena::Attach(*ArenaMemory::Adopt(memory->fd()), 3).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Arena::Attach(*ArenaMemory::Adopt(memory->fd()), 2).status()));
  arena->header().layout_hash ^= 1;
  EXPECT_TRUE(absl::IsFailedPrecondition(Arena::Attach(*ArenaMemory::Adopt(memory->fd()), 3).status()));
}

// Without a supervisor, the chief gives every ps the same values again, and nobody mixes the old with the new.
TEST_P(StoreSurvivalTest, APsThatComesBackEmptyIsLoadedAnewTogetherWithTheOthers) {
  SimulatedStore store(2, kTasks, kUnrenewedLease, nullptr, GetParam().direct());
  const StoreClientOptions options = {.apply = GetParam().apply, .part_bytes = GetParam().part_bytes()};
  WorkerModel chiefs(kVariables, {.learning_rate = 1}, 2);
  WorkerModel workers(kVariables, {.learning_rate = 1}, 2);
  auto chief = store.Client("chief:0", options);
  auto worker = store.Client("worker:0", options);
  ASSERT_EQ(chief->Join(true), absl::OkStatus());
  chief->Bind(chiefs.binding);
  ASSERT_EQ(chief->Initialize(0, 0, nullptr), absl::OkStatus());
  ASSERT_EQ(worker->Join(false), absl::OkStatus());
  worker->Bind(workers.binding);
  ASSERT_TRUE(worker->AwaitReady(absl::InfiniteFuture()).ok());
  WorkerModel ones(kVariables, {.learning_rate = 1}, 2);
  ones.Fill(1);
  const auto gradient = [&](size_t i) { return ByteSpan(ones.memory[i]); };
  ASSERT_TRUE(PushBy(GetParam(), *worker, gradient, false).ok());

  store.LosePs(1);
  store.StartPs(1);
  const auto pushed = PushBy(GetParam(), *worker, gradient, false);
  EXPECT_TRUE(absl::IsAborted(pushed.status())) << pushed.status();
  ASSERT_EQ(worker->Join(false), absl::OkStatus());
  EXPECT_FALSE(worker->ready());
  store.loop.CallAt(store.loop.Now() + absl::Seconds(1), [&] {
    EXPECT_EQ(chief->Join(true), absl::OkStatus());
    EXPECT_FALSE(chief->ready());
    chiefs.Fill(5);
    EXPECT_EQ(chief->Initialize(40, 40, nullptr), absl::OkStatus());
  });
  EXPECT_EQ(worker->AwaitReady(absl::InfiniteFuture()).value_or(-1), 40);
  ASSERT_EQ(worker->Pull(PullWhat::kEverything), absl::OkStatus());
  EXPECT_TRUE(workers.memory == chiefs.memory);
  EXPECT_EQ(PushBy(GetParam(), *worker, gradient, false)->global_step, 41);
}

}  // namespace
}  // namespace muster::store_survival_test
