// Saves from every layout of a model on ps and restores into every other: values, slots and step counters must be the
// same. Partitions are chosen so that stripes of 16,384 elements are cut in odd places.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/sanitizer_stride.h"
#include "muster/checkpoint/checkpoint_diff.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/train/saving/saver.h"
#include "muster/train/testing/training_process.h"

namespace muster::saver_matrix_test {
namespace {

// Rows of 1,000 and of 9,000 elements: no partition ends where a stripe does.
const std::vector<VariableSpec> kVariables = {
    {.name = "w", .shape = {23, 1000}},
    {.name = "b", .shape = {7}},
    {.name = "wide", .shape = {2, 9000}},
    {.name = "scale"},
    {.name = "none", .shape = {0, 3}},
    {.name = "frozen", .shape = {5}, .kind = VariableKind::kFrozen},
    {.name = "mean", .shape = {6}, .kind = VariableKind::kBuffer},
};

struct Layout {
  int num_ps = 1;
  Placement placement = Placement::kRoundRobin;
  Partitioning partitioning;
};

std::string NameOf(const Layout& layout) {
  return absl::StrCat(layout.num_ps, " ps, placement ", static_cast<int>(layout.placement), ", partitioning ",
                      static_cast<int>(layout.partitioning.kind));
}

std::vector<Layout> AllLayouts() {
  std::vector<Layout> layouts;
  for (const Partitioning& partitioning :
       {Partitioning{}, Partitioning{.kind = Partitioning::Kind::kFixed, .shards = 2},
        Partitioning{.kind = Partitioning::Kind::kMaxBytes, .max_shard_bytes = 28000},
        Partitioning{.kind = Partitioning::Kind::kMinSlice, .min_slice_bytes = 20, .max_partitions = 3}})
    for (const int num_ps : {1, 2, 3})
      for (const Placement placement : {Placement::kRoundRobin, Placement::kGreedyBySize, Placement::kGreedySorted})
        if (num_ps > 1 || placement == Placement::kRoundRobin)  // on one ps they are the same
          layouts.push_back({num_ps, placement, partitioning});
  return layouts;
}

// A chief with ps of its own, which share its disk.
struct Job {
  Job(MemoryFileSystem& disk, const RuleSpec& rule, const Layout& layout) : store(layout.num_ps, {"chief:0"}) {
    for (int ps = 0; ps < layout.num_ps; ++ps) {
      store.KillPs(ps);
      store.StartPs(ps, &disk);
    }
    chief = std::make_unique<TrainingProcess>(store, "chief:0",
                                              TrainingOptions{.variables = kVariables,
                                                              .rule = rule,
                                                              .placement = layout.placement,
                                                              .partitioning = layout.partitioning,
                                                              .files = &disk});
  }
  std::unique_ptr<Saver> MakeSaver(MemoryFileSystem& disk, const std::string& directory) {
    return std::make_unique<Saver>(disk, store.loop, *chief->client, directory, SaverOptions{});
  }

  SimulatedStore store;
  std::unique_ptr<TrainingProcess> chief;
};

class SaverMatrixTest : public ::testing::TestWithParam<RuleKind> {};

TEST_P(SaverMatrixTest, EveryLayoutToEveryOther) {
  const RuleSpec rule = {.kind = GetParam(), .learning_rate = 0.1};
  const std::vector<Layout> layouts = AllLayouts();
  ASSERT_EQ(layouts.size(), 28u);
  MemoryFileSystem disk;
  std::vector<std::vector<float>> trained;
  for (size_t i = 0; i < layouts.size(); ++i) {
    Job job(disk, rule, layouts[i]);
    job.chief->source.values(5) = {1, 2, 3, 4, 5};
    job.chief->source.values(6) = {6, 5, 4, 3, 2, 1};
    job.chief->StartAsChief();
    for (int step = 0; step < 3; ++step) job.chief->Step();
    ASSERT_TRUE(job.MakeSaver(disk, absl::StrCat("from", i))->Save().ok());
    std::vector<std::vector<float>> values;
    for (size_t v = 0; v < kVariables.size(); ++v) values.push_back(job.chief->source.values(v));
    if (i == 0) trained = values;
    ASSERT_EQ(values, trained) << NameOf(layouts[i]);
  }
  for (size_t pair = 0; pair < layouts.size() * layouts.size(); pair += kSanitizerStride) {
    const size_t to = pair / layouts.size(), from = pair % layouts.size();
    SCOPED_TRACE(absl::StrCat("from ", NameOf(layouts[from]), " to ", NameOf(layouts[to])));
    Job job(disk, rule, layouts[to]);
    ASSERT_EQ(job.chief->client->Join(true), absl::OkStatus());
    job.chief->client->Bind(job.chief->algorithm->binding());
    const auto step = job.MakeSaver(disk, absl::StrCat("from", from))->RestoreLatest().value();
    ASSERT_EQ(*step, 3);
    ASSERT_EQ(job.chief->client->Pull(PullWhat::kEverything), absl::OkStatus());
    for (size_t v = 0; v < kVariables.size(); ++v) ASSERT_EQ(job.chief->source.values(v), trained[v]);
    // Compares slots and counters, as the ps hold them now, with those of one ps without partitions.
    ASSERT_TRUE(job.MakeSaver(disk, "to")->Save().ok());
    const auto restored = CheckpointReader::Open(disk, "to/model.ckpt-3", {.verify_checksums = false});
    const auto reference = CheckpointReader::Open(disk, "from0/model.ckpt-3", {.verify_checksums = false});
    ASSERT_TRUE(restored.ok() && reference.ok()) << restored.status();
    ASSERT_EQ((*restored)->manifest().parts.size(), static_cast<size_t>(layouts[to].num_ps));
    const auto lines = DiffCheckpoints(**reference, **restored).value();
    ASSERT_THAT(lines, testing::IsEmpty());
    ASSERT_EQ(*(*restored)->ReadCounter("w", "t", 0, 23000), 3);
    ASSERT_TRUE(disk.RemoveTree("to").ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, SaverMatrixTest, testing::Values(RuleKind::kSgd, RuleKind::kMomentum, RuleKind::kAdam),
                         [](const auto& tested) { return RuleName(tested.param); });

}  // namespace
}  // namespace muster::saver_matrix_test
