// Tables of rows through the store: workers look rows up and push gradients, on several ps, and are compared with one
// table in plain memory; with faults, restarts and checkpoints.
#include "muster/store/client/row_client.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/optim/sparse_rows.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/checkpoints/reshard.h"
#include "muster/store/client/cut_leader.h"
#include "muster/store/model/row_initializer.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::row_client_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

constexpr int64_t kRows = 1003;
constexpr int64_t kWidth = 20;
const std::vector<std::string> kTasks = {"chief:0", "worker:0"};
const LeaseOptions kLongLease = {.lease = absl::Hours(10)};
const RuleSpec kAdam = {.kind = RuleKind::kAdam, .learning_rate = 0.1};

std::vector<VariableSpec> Variables(RowPartition partition) {
  return {{.name = "dense", .shape = {5, 3}},
          {.name = "table",
           .shape = {kRows, kWidth},
           .kind = VariableKind::kRows,
           .table = {.partition = partition, .initial = RowInitializer::Uniform(-1, 1, 7)}},
          {.name = "bias", .shape = {3}}};
}

// A process: its dense variables have memory, the table has none. Applies its own updates if the store lets it.
struct Process {
  Process(SimulatedStore& store, const std::string& task, RowPartition partition,
          const OptimizerSpec& optimizer = kAdam)
      : model(Variables(partition), {}, static_cast<int>(store.addresses().size())),
        client(store.Client(task, {.apply = ApplyChoice::kAuto})) {
    SetUp(optimizer);
  }
  Process(SimulatedStore& store, const std::string& task, FaultScript& script, RowPartition partition)
      : model(Variables(partition), {}, static_cast<int>(store.addresses().size())),
        client(store.Client(task, script)) {
    SetUp(kAdam);
  }
  void SetUp(const OptimizerSpec& optimizer) {
    model.binding.optimizer = optimizer;
    model.memory[1] = {};
    model.binding.values[1] = {};
  }
  absl::Status JoinAsChief() {
    model.Fill(1);
    return JoinToTrain(*client, model.binding, /*chief=*/true);
  }
  absl::Status JoinAsWorker() { return muster::JoinAsWorker(*client, model.binding); }
  std::vector<float> Gather(const std::vector<int64_t>& indices) {
    std::vector<float> values(indices.size() * kWidth);
    const absl::Status status = rows.Gather("table", {indices, DType::kFloat32, Into(values)});
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }
  absl::Status Push(const std::vector<int64_t>& indices, const std::vector<float>& gradients) {
    return rows.Push("table", {indices, DType::kFloat32, AsBytes(gradients.data(), gradients.size())}).status();
  }
  static MutableByteSpan Into(std::vector<float>& values) { return AsMutableBytes(values.data(), values.size()); }

  WorkerModel model;
  std::unique_ptr<StoreClient> client;
  RowClient rows{*client};
};

// The table in plain memory.
struct Plain {
  Plain() : value(kRows * kWidth), m(value.size()), v(value.size()) {
    InitializeRows(Variables(RowPartition::kMod)[1], {}, 0, AsMutableBytes(value.data(), value.size()));
  }
  void Push(const std::vector<int64_t>& indices, const std::vector<float>& gradients) {
    const std::vector<MutableByteSpan> slots = {AsMutableBytes(m.data(), m.size()), AsMutableBytes(v.data(), v.size())};
    const absl::Status applied = ApplyRows(
        **MakeUpdateRule(kAdam), {.width = kWidth, .value = AsMutableBytes(value.data(), value.size()), .slots = slots},
        indices, AsBytes(gradients.data(), gradients.size()), {.learning_rate = 0.1, .t = ++t});
    EXPECT_TRUE(applied.ok()) << applied;
  }
  std::vector<float> value, m, v;
  uint64_t t = 0;
};

std::vector<int64_t> AllRows() {
  std::vector<int64_t> rows(kRows);
  for (int64_t row = 0; row < kRows; ++row) rows[row] = row;
  return rows;
}

// Random rows, some of them twice.
std::vector<int64_t> Batch(std::minstd_rand& random) {
  std::vector<int64_t> indices(60);
  for (int64_t& index : indices) index = static_cast<int64_t>(random() % kRows);
  for (size_t i = 0; i < 10; ++i) indices.push_back(indices[i * 3]);
  return indices;
}

std::vector<float> Gradients(size_t rows, double phase) {
  std::vector<float> values(rows * kWidth);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(phase + 0.13 * static_cast<double>(i)));
  return values;
}

// Writes a checkpoint of step 5 as a chief does when no ps sees the directory.
void SaveIn(const std::string& directory, SimulatedStore& store, StoreClient& chief) {
  Manifest manifest{.global_step = 5, .save_id = "t1", .writer = "ps:0"};
  ASSERT_TRUE(store.files.CreateDirectory(directory).ok());
  for (int ps = 0; ps < chief.num_ps(); ++ps) {
    const StoreModel model = chief.ModelOf(ps);
    if (ps == 0) AddVariablesToManifest(model, manifest);
    const PartSnapshot snapshot = store.Snapshot(ps);
    const std::string file = PartFileName(5, ps, chief.num_ps());
    const auto written =
        WritePart(store.files, JoinPath(directory, TemporaryName(file, "t1")), model, ViewOf(model, snapshot)).value();
    manifest.parts.push_back({file, written.bytes, written.crc32c});
    AddPartToManifest(model, ps, manifest);
  }
  ASSERT_TRUE(CommitManifest(store.files, directory, manifest).ok());
}

struct Layout {
  int num_ps;
  RowPartition partition;
  bool direct = false;
};
class RowClientTest : public ::testing::TestWithParam<Layout> {};

TEST_P(RowClientTest, TrainsTheSameTableOnAnyNumberOfPs) {
  SimulatedStore store(GetParam().num_ps, kTasks, kLongLease, nullptr, GetParam().direct);
  Process chief(store, "chief:0", GetParam().partition), worker(store, "worker:0", GetParam().partition);
  ASSERT_TRUE(chief.JoinAsChief().ok());
  ASSERT_TRUE(worker.JoinAsWorker().ok());
  Plain plain;
  EXPECT_EQ(chief.Gather(AllRows()), plain.value);
  std::minstd_rand random(3);
  for (int step = 0; step < 8; ++step) {
    Process& process = step % 2 == 0 ? chief : worker;
    const auto indices = Batch(random);
    const auto gradients = Gradients(indices.size(), step);
    const auto next = Batch(random);
    const absl::Status pushed = process.Push(indices, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed;
    EXPECT_EQ(gradients, Gradients(indices.size(), step)) << "the gradients were written to";
    plain.Push(indices, gradients);
    const std::vector<float> looked_up = process.Gather(next);
    for (size_t i = 0; i < next.size(); ++i)
      for (int64_t j = 0; j < kWidth; ++j)
        ASSERT_EQ(looked_up[i * kWidth + j], plain.value[next[i] * kWidth + j]) << "row " << next[i];
  }
  EXPECT_EQ(worker.Gather(AllRows()), plain.value);
  // The table and the version don't concern the dense variables.
  EXPECT_TRUE(worker.client->Pull(PullWhat::kEverything).ok());
  const auto status = nlohmann::json::parse(StatusJson(store.service(0).MakeView()));
  EXPECT_EQ(status["requests"].value("push_rows", 0), GetParam().direct ? 0 : 8);
  EXPECT_EQ(status["requests"].contains("gather_rows"), !GetParam().direct);
  EXPECT_EQ(status["rows"]["pushed"] > 0, !GetParam().direct);
  EXPECT_EQ(status["global_step"], 0);
  EXPECT_EQ(status["version"], 0);
}

TEST_P(RowClientTest, ARestoreOnAnotherNumberOfPsIsTheSameTable) {
  Plain plain;
  std::minstd_rand random(5);
  SimulatedStore store(GetParam().num_ps, kTasks, kLongLease, nullptr, GetParam().direct);
  Process chief(store, "chief:0", GetParam().partition);
  ASSERT_TRUE(chief.JoinAsChief().ok());
  for (int step = 0; step < 5; ++step) {
    const auto indices = Batch(random);
    ASSERT_TRUE(chief.Push(indices, Gradients(indices.size(), step)).ok());
    plain.Push(indices, Gradients(indices.size(), step));
  }
  SaveIn("dir", store, *chief.client);
  {
    const auto reader = CheckpointReader::Open(store.files, JoinPath("dir", CheckpointName(5))).value();
    ASSERT_TRUE(ReshardCheckpoint(store.files, *reader, "other", {.num_ps = 2}, "t2").ok());
  }
  for (const char* directory : {"dir", "other"})
    for (const int num_ps : {1, 2, 3, 5})
      for (const RowPartition partition : {RowPartition::kMod, RowPartition::kDiv}) {
        SCOPED_TRACE(absl::StrCat(directory, " onto ", num_ps, " ps"));
        const auto reader = CheckpointReader::Open(store.files, JoinPath(directory, CheckpointName(5))).value();
        std::vector<float> whole(plain.value.size());
        ASSERT_TRUE(reader->ReadVariable("table", Process::Into(whole)).ok());
        EXPECT_EQ(whole, plain.value);
        SimulatedStore again(num_ps, kTasks, kLongLease);
        Process restored(again, "chief:0", partition);
        ASSERT_TRUE(restored.client->Join(true).ok());
        restored.client->Bind(restored.model.binding);
        std::vector<RestoredPart> parts;
        for (int ps = 0; ps < num_ps; ++ps) {
          auto part = ReadPart(*reader, restored.client->ModelOf(ps)).value();
          EXPECT_TRUE(part.with_slots);
          parts.push_back(std::move(part));
        }
        ASSERT_TRUE(restored.client->Initialize(5, 5, &parts).ok());
        EXPECT_EQ(restored.Gather(AllRows()), plain.value);
        // The slots and Adam's t are the same too, because the next update is.
        Plain next = plain;
        const std::vector<int64_t> indices = {0, 1, 500, kRows - 1};
        ASSERT_TRUE(restored.Push(indices, Gradients(4, 9)).ok());
        next.Push(indices, Gradients(4, 9));
        EXPECT_EQ(restored.Gather(AllRows()), next.value);
      }
}

INSTANTIATE_TEST_SUITE_P(All, RowClientTest,
                         ::testing::Values(Layout{1, RowPartition::kMod}, Layout{3, RowPartition::kMod},
                                           Layout{1, RowPartition::kDiv}, Layout{3, RowPartition::kDiv},
                                           Layout{1, RowPartition::kMod, true}, Layout{3, RowPartition::kMod, true},
                                           Layout{3, RowPartition::kDiv, true}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.num_ps,
                                               info.param.partition == RowPartition::kMod ? "Mod" : "Div",
                                               info.param.direct ? "Direct" : "");
                         });

// Whether the ps or the worker applies them.
class RowsAppliedByTest : public ::testing::TestWithParam<bool> {
 protected:
  SimulatedStore store_{2, kTasks, kLongLease, nullptr, /*direct=*/GetParam()};
  Process chief_{store_, "chief:0", RowPartition::kMod};
};

// The fault strikes before the ps has the request, after it, or doubles it: the push is applied once.
TEST(RowClient, ARetriedPushIsAppliedOnce) {
  for (const FaultKind kind : {FaultKind::kCutRequest, FaultKind::kCutReply, FaultKind::kDuplicateRequest}) {
    SimulatedStore store(2, kTasks, kLongLease);
    FaultScript script;
    for (uint64_t first = 1; first <= 10; first += 3)
      script.Add({.kind = kind, .first = first, .method = static_cast<uint16_t>(StoreMethod::kPushRows), .bytes = 100});
    Process chief(store, "chief:0", script, RowPartition::kMod);
    ASSERT_TRUE(chief.JoinAsChief().ok());
    Plain plain;
    std::minstd_rand random(3);
    for (int step = 0; step < 4; ++step) {
      const auto indices = Batch(random);
      const absl::Status pushed = chief.Push(indices, Gradients(indices.size(), step));
      ASSERT_TRUE(pushed.ok()) << pushed;
      plain.Push(indices, Gradients(indices.size(), step));
    }
    EXPECT_GE(script.met(), 3);
    EXPECT_EQ(chief.Gather(AllRows()), plain.value);
  }
}

// Rows of 8 KB that lie across stripes: a batch is several requests, some of which are cut off and come later.
TEST(RowClient, ALargeBatchIsSeveralRequestsAndOnePush) {
  constexpr int64_t kWide = 2000;
  for (const int num_ps : {1, 3}) {
    const VariableSpec table = {.name = "table", .shape = {kRows, kWide}, .kind = VariableKind::kRows};
    SimulatedStore store(num_ps, kTasks, kLongLease);
    FaultScript script;
    for (uint64_t first = 2; first <= 20; first += 4)
      script.Add({.kind = first % 8 == 2 ? FaultKind::kCutReply : FaultKind::kCutRequest,
                  .first = first,
                  .method = static_cast<uint16_t>(StoreMethod::kPushRows),
                  .bytes = 1000});
    const auto client = store.Client("chief:0", script);
    ASSERT_TRUE(client->Join(true).ok());
    client->Bind({{table}, *PlaceVariables({table}, num_ps, Placement::kRoundRobin, {}), kAdam, {{}}});
    ASSERT_TRUE(client->Initialize(0, 0, nullptr).ok());
    ASSERT_TRUE(client->AwaitReady(absl::InfiniteFuture()).ok());
    RowClient rows(*client);
    const std::vector<int64_t> all = AllRows();
    std::vector<float> value(kRows * kWide), m(value.size()), v(value.size()), looked_up(value.size());
    const std::vector<MutableByteSpan> slots = {Process::Into(m), Process::Into(v)};
    std::minstd_rand random(3);
    for (uint64_t step = 1; step <= 3; ++step) {
      std::vector<int64_t> indices(600);
      for (int64_t& index : indices) index = static_cast<int64_t>(random() % kRows);
      std::vector<float> gradients(indices.size() * kWide);
      for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 97) - 40;
      const ByteSpan bytes = AsBytes(gradients.data(), gradients.size());
      ASSERT_TRUE(rows.Push("table", {indices, DType::kFloat32, bytes}).ok());
      ASSERT_TRUE(ApplyRows(**MakeUpdateRule(kAdam), {.width = kWide, .value = Process::Into(value), .slots = slots},
                            indices, bytes, {.learning_rate = 0.1, .t = step})
                      .ok());
      ASSERT_TRUE(rows.Gather("table", {all, DType::kFloat32, Process::Into(looked_up)}).ok());
      EXPECT_TRUE(looked_up == value) << "after push " << step << " on " << num_ps << " ps";
    }
    EXPECT_GE(script.met(), 4);
  }
}

TEST_P(RowsAppliedByTest, APsThatIsKilledGoesOnWithItsTable) {
  ASSERT_TRUE(chief_.JoinAsChief().ok());
  Plain plain;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(chief_.Push({1, 2, 3, 1}, Gradients(4, step)).ok());
    plain.Push({1, 2, 3, 1}, Gradients(4, step));
    store_.KillPs(step % 2);
    store_.StartPs(step % 2);
  }
  EXPECT_EQ(chief_.Gather(AllRows()), plain.value);
}

TEST_P(RowsAppliedByTest, APsThatLostItsTableSaysAbortedAndTheNextModelWorks) {
  ASSERT_TRUE(chief_.JoinAsChief().ok());
  ASSERT_TRUE(chief_.Push({1, 2, 3}, Gradients(3, 1)).ok());
  store_.LosePs(1);
  store_.StartPs(1);
  EXPECT_TRUE(absl::IsAborted(chief_.Push({1, 2, 3}, Gradients(3, 1))));
  ASSERT_TRUE(chief_.JoinAsChief().ok());
  EXPECT_EQ(chief_.Gather(AllRows()), Plain().value);
  EXPECT_TRUE(chief_.Push({1, 2, 3}, Gradients(3, 1)).ok());
}

TEST_P(RowsAppliedByTest, RowsOfOlderValuesAreNeitherReadNorUpdated) {
  Process worker(store_, "worker:0", RowPartition::kMod);
  ASSERT_TRUE(chief_.JoinAsChief().ok());
  ASSERT_TRUE(worker.JoinAsWorker().ok());
  ASSERT_TRUE(worker.Push({1, 2, 3}, Gradients(3, 1)).ok());
  ASSERT_EQ(chief_.client->Initialize(0, 0, nullptr), absl::OkStatus());
  EXPECT_TRUE(absl::IsAborted(worker.Push({1, 2, 3}, Gradients(3, 1))));
  std::vector<float> values(kWidth);
  const std::vector<int64_t> one = {1};
  EXPECT_TRUE(absl::IsAborted(worker.rows.Gather("table", {one, DType::kFloat32, Process::Into(values)})));
  ASSERT_TRUE(worker.JoinAsWorker().ok());
  EXPECT_EQ(worker.Gather(AllRows()), Plain().value);
}

TEST_P(RowsAppliedByTest, AfterTheEndRowsAreReadAndNotUpdated) {
  ASSERT_TRUE(chief_.JoinAsChief().ok());
  ASSERT_EQ(chief_.client->Shutdown("enough"), absl::OkStatus());
  EXPECT_TRUE(absl::IsCancelled(chief_.Push({1, 2, 3}, Gradients(3, 1))));
  EXPECT_EQ(chief_.Gather(AllRows()), Plain().value);
}

// At the end, only the dense variables, on both sides of the table, become a process's own memory.
TEST_P(RowsAppliedByTest, OthersSeeTheTableAfterOneIsDone) {
  Process worker(store_, "worker:0", RowPartition::kMod);
  ASSERT_TRUE(chief_.JoinAsChief().ok());
  ASSERT_TRUE(worker.JoinAsWorker().ok());
  Plain plain;
  ASSERT_TRUE(worker.Push({1, 2, 3}, Gradients(3, 1)).ok());
  plain.Push({1, 2, 3}, Gradients(3, 1));
  ASSERT_EQ(worker.client->Done(), absl::OkStatus());
  ASSERT_TRUE(chief_.Push({1, 2, 3}, Gradients(3, 2)).ok());
  plain.Push({1, 2, 3}, Gradients(3, 2));
  EXPECT_EQ(chief_.Gather(AllRows()), plain.value);
}

INSTANTIATE_TEST_SUITE_P(All, RowsAppliedByTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Direct" : "Server"; });

TEST(RowClient, WhatCannotBeMeantIsRefusedAndNothingIsSent) {
  SimulatedStore store(2, kTasks, kLongLease);
  Process chief(store, "chief:0", RowPartition::kMod);
  ASSERT_TRUE(chief.JoinAsChief().ok());
  const auto expect = [](const absl::Status& status, absl::StatusCode code, const auto& message) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), message);
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  expect(chief.Push({5, kRows}, Gradients(2, 1)), invalid,
         AllOf(HasSubstr("row 1003 (index 1 of 2)"), HasSubstr("'table' has 1003 rows")));
  expect(chief.Push({-1}, Gradients(1, 1)), invalid, HasSubstr("row -1 (index 0 of 1)"));
  expect(chief.Push({5}, Gradients(2, 1)), invalid,
         HasSubstr("1 rows of variable 'table' float32[1003,20] are 1 x 20 float32, not 40 float32"));
  std::vector<float> values(kWidth);
  const std::vector<int64_t> one = {1};
  expect(chief.rows.Gather("nosuch", {one, DType::kFloat32, Process::Into(values)}), absl::StatusCode::kNotFound,
         HasSubstr("no variable 'nosuch'"));
  expect(chief.rows.Gather("dense", {one, DType::kFloat32, Process::Into(values)}), invalid,
         HasSubstr("no table of rows"));
  expect(chief.rows.Gather("table", {one, DType::kFloat64, Process::Into(values)}), invalid,
         HasSubstr("not 10 float64"));
  EXPECT_EQ(chief.Gather(AllRows()), Plain().value);
}

TEST(RowClient, GradientsThatAreNotFiniteAreDroppedOrEndTheTraining) {
  for (const NonFinite policy : {NonFinite::kDrop, NonFinite::kStop, NonFinite::kApply}) {
    SimulatedStore store(2, kTasks, kLongLease);
    OptimizerSpec optimizer = kAdam;
    optimizer.non_finite = policy;
    Process chief(store, "chief:0", RowPartition::kMod, optimizer);
    ASSERT_TRUE(chief.JoinAsChief().ok());
    auto gradients = Gradients(2, 1);
    gradients[3] = std::numeric_limits<float>::infinity();
    const std::vector<int64_t> indices = {4, 5};
    const auto pushed =
        chief.rows.Push("table", {indices, DType::kFloat32, AsBytes(gradients.data(), gradients.size())});
    if (policy == NonFinite::kStop) {
      EXPECT_TRUE(absl::IsInvalidArgument(pushed.status())) << pushed.status();
    } else {
      ASSERT_TRUE(pushed.ok()) << pushed.status();
      EXPECT_EQ(*pushed, policy == NonFinite::kApply);
    }
    EXPECT_EQ(chief.Gather(AllRows()) == Plain().value, policy != NonFinite::kApply);
  }
}

TEST(RowModel, WhatATableCannotBeIsRefused) {
  const auto check = [](VariableSpec table, const RuleSpec& rule, GateSpec gate = {}) {
    StoreModel model{.variables = {table}, .slices = {}, .optimizer = rule};
    model.gate = gate;
    return std::string(ValidateModel(model).message());
  };
  VariableSpec table = Variables(RowPartition::kMod)[1];
  EXPECT_EQ(check(table, kAdam), "");
  EXPECT_THAT(check(table, {.kind = RuleKind::kRmsProp}), HasSubstr("can't update single rows"));
  EXPECT_THAT(check(table, {.clip = {.kind = ClipKind::kGlobalNorm, .limit = 1}}), HasSubstr("global norm"));
  EXPECT_THAT(check(table, {}, {.kind = GateKind::kSynchronous, .replicas_to_aggregate = 1, .total_replicas = 1}),
              HasSubstr("synchronous gate can't average"));
  table.shape = {5, 0};
  EXPECT_THAT(check(table, kAdam), HasSubstr("its rows have no elements"));
  table.shape = {0, int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(check(table, kAdam), HasSubstr("impossible shape"));
  table.shape = {5, 3};
  table.dtype = DType::kInt32;
  EXPECT_NE(check(table, {}), "");
}

TEST(RowClientTest, NoCheckpointWaitsForANumberThatOnlyRowsHave) {
  SimulatedStore store(2, kTasks, kLongLease);
  Process chief(store, "chief:0", RowPartition::kMod);
  Process worker(store, "worker:0", RowPartition::kMod);
  ASSERT_TRUE(chief.JoinAsChief().ok());
  ASSERT_TRUE(worker.JoinAsWorker().ok());
  ASSERT_TRUE(worker.Push({4, 5, 6}, Gradients(3, 1)).ok());
  // After a restart, it knows only from its stripes what was begun.
  store.KillPs(1);
  store.StartPs(1);
  const auto cut = CutCheckpoint(*chief.client);
  EXPECT_TRUE(cut.ok()) << cut.status();
}

}  // namespace
}  // namespace muster::row_client_test
