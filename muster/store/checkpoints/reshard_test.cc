#include "muster/store/checkpoints/reshard.h"

#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/files/forwarding_file_system.h"
#include "muster/checkpoint/checkpoint_diff.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::reshard_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty;

const std::vector<VariableSpec> kVariables = {
    {.name = "w", .shape = {40, 1000}},
    {.name = "frozen", .shape = {3}, .kind = VariableKind::kFrozen},
    {.name = "b", .dtype = DType::kFloat64, .shape = {2}},
    {.name = "none", .shape = {0, 3}},
    {.name = "scalar"},
    {.name = "mask", .dtype = DType::kUInt8, .shape = {5}, .kind = VariableKind::kBuffer},
};
constexpr Partitioning kInThree = {.kind = Partitioning::Kind::kFixed, .shards = 3};

// Saves a checkpoint of one ps in directory "from": something in every byte of values and slots, the same number of
// steps in every stripe unless `uneven`.
std::unique_ptr<CheckpointReader> Saved(FileSystem& files, bool uneven = false) {
  const StoreModel model = ModelOn(kVariables, {.kind = RuleKind::kAdam});
  const auto arena = *Arena::Create(model, 1);
  PartSnapshot snapshot = TakeSnapshot(*arena);
  for (size_t i = 0; i + 4 <= snapshot.bytes.size(); i += 4) {
    const float value = static_cast<float>(i) / 4;
    std::memcpy(snapshot.bytes.data() + i, &value, sizeof value);
  }
  for (size_t i = 0; i < snapshot.steps.size(); ++i) snapshot.steps[i] = uneven ? 5 + i : 5;
  Manifest manifest = {.global_step = 9, .saved_at = 7000, .save_id = "a", .extras = {{"input", "eA=="}}};
  EXPECT_TRUE(files.CreateDirectory("from").ok());
  const std::string part = PartFileName(9, 0, 1);
  const auto written =
      WritePart(files, JoinPath("from", TemporaryName(part, "a")), model, ViewOf(model, snapshot)).value();
  AddVariablesToManifest(model, manifest);
  AddPartToManifest(model, 0, manifest);
  manifest.parts.push_back({part, written.bytes, written.crc32c});
  EXPECT_EQ(CommitManifest(files, "from", manifest), absl::OkStatus());
  return CheckpointReader::Open(files, "from/model.ckpt-9").value();
}

TEST(ReshardTest, IsWhatThePsWouldRestore) {
  MemoryFileSystem files;
  const auto from = Saved(files, /*uneven=*/true);
  const auto path = ReshardCheckpoint(files, *from, "to", {.num_ps = 2, .partitioning = kInThree}, "b").value();
  EXPECT_EQ(path, "to/model.ckpt-9");
  const auto to = CheckpointReader::Open(files, path).value();
  EXPECT_EQ(to->manifest().parts.size(), 2u);
  EXPECT_EQ(to->manifest().variables[0].slices.size(), 3u);
  EXPECT_EQ(to->manifest().saved_at, 7000);
  EXPECT_EQ(to->manifest().extras, from->manifest().extras);
  EXPECT_EQ(to->manifest().variables[1].kind, "frozen");
  for (int ps = 0; ps < 2; ++ps) {
    const StoreModel model = ModelOn(kVariables, {.kind = RuleKind::kAdam}, 2, ps, kInThree);
    const auto expected = ReadPart(*from, model);
    const auto found = ReadPart(*to, model);
    ASSERT_TRUE(expected.ok() && found.ok()) << found.status();
    EXPECT_EQ(found->snapshot.bytes, expected->snapshot.bytes);
    EXPECT_EQ(found->snapshot.steps, expected->snapshot.steps);
    // The file that the ps itself would have written, under its own name.
    const auto part = WritePart(files, "expected", model, ViewOf(model, expected->snapshot)).value();
    EXPECT_EQ(part.crc32c, to->manifest().parts[ps].crc32c);
  }
}

TEST(ReshardTest, ThereAndBackIsTheSameState) {
  for (const Placement placement : {Placement::kRoundRobin, Placement::kGreedyBySize, Placement::kGreedySorted}) {
    MemoryFileSystem files;
    const auto from = Saved(files);
    const ReshardOptions options = {.num_ps = 3, .placement = placement, .partitioning = kInThree};
    ASSERT_TRUE(ReshardCheckpoint(files, *from, "there", options, "b").ok());
    const auto there = *CheckpointReader::Open(files, "there/model.ckpt-9");
    EXPECT_THAT(*DiffCheckpoints(*from, *there), IsEmpty());
    ASSERT_TRUE(ReshardCheckpoint(files, *there, "back", {}, "c").ok());
    const auto back = *CheckpointReader::Open(files, "back/model.ckpt-9");
    EXPECT_THAT(*DiffCheckpoints(*from, *back), IsEmpty());
    EXPECT_EQ(back->manifest().variables, from->manifest().variables);
    EXPECT_EQ(back->manifest().parts[0].crc32c, from->manifest().parts[0].crc32c);
  }
}

TEST(ReshardTest, NothingIsOverwritten) {
  MemoryFileSystem files;
  const auto from = Saved(files);
  const auto names = *files.ListDirectory("from");
  for (const char* directory : {"from", "to", "to"}) {
    const auto path = ReshardCheckpoint(files, *from, directory, {.num_ps = 2}, "b");
    if (path.ok()) continue;  // the first into "to"
    EXPECT_TRUE(absl::IsAlreadyExists(path.status())) << path.status();
    EXPECT_THAT(std::string(path.status().message()), HasSubstr(directory));
  }
  EXPECT_EQ(*files.ListDirectory("from"), names);
}

TEST(ReshardTest, APlacementThatCannotBe) {
  MemoryFileSystem files;
  const auto from = Saved(files);
  EXPECT_TRUE(absl::IsInvalidArgument(ReshardCheckpoint(files, *from, "to", {.num_ps = 0}, "b").status()));
  EXPECT_FALSE(files.Exists("to"));
}

// After a stop at any change, or with the disk full at any point, there is the whole new checkpoint or none.
TEST(ReshardTest, WholeOrNotAtAll) {
  int64_t stop = 0;
  for (bool done = false; !done; ++stop) {
    MemoryFileSystem files;
    const auto from = Saved(files);
    files.Resume();
    files.StopAfter(stop);
    done = ReshardCheckpoint(files, *from, "to", {.num_ps = 2, .partitioning = kInThree}, "b").ok();
    files.Resume();
    const auto latest = LatestCheckpoint(files, "to");
    ASSERT_TRUE(latest.ok()) << "stopped after " << stop << ": " << latest.status();
    EXPECT_TRUE(!done || latest->has_value());
    ASSERT_LT(stop, 100);
  }
  EXPECT_GT(stop, 15);

  uint64_t room = 0;
  for (bool done = false; !done; room += 50000) {
    MemoryFileSystem files;
    const auto from = Saved(files);
    files.FillAfter(room);
    const auto path = ReshardCheckpoint(files, *from, "to", {.num_ps = 2}, "b");
    files.Unfill();
    done = path.ok();
    if (done) break;
    EXPECT_TRUE(absl::IsResourceExhausted(path.status())) << path.status();
    EXPECT_THAT(*files.ListDirectory("to"), IsEmpty()) << "with room for " << room;
  }
  EXPECT_GT(room, 400000u);
}

// Notes the largest piece that is read or written.
class MeasuringFileSystem final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  size_t largest() const { return largest_; }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    auto file = ForwardingFileSystem::OpenForReading(path);
    if (!file.ok()) return file.status();
    return std::make_unique<MeasuringFile>(*std::move(file), largest_);
  }

 private:
  class MeasuringFile final : public ReadableFile {
   public:
    MeasuringFile(std::unique_ptr<ReadableFile> inner, size_t& largest) : inner_(std::move(inner)), largest_(largest) {}
    absl::Status ReadAt(uint64_t offset, MutableByteSpan into) const override {
      largest_ = std::max(largest_, into.size());
      return inner_->ReadAt(offset, into);
    }
    absl::StatusOr<uint64_t> Size() const override { return inner_->Size(); }

   private:
    const std::unique_ptr<ReadableFile> inner_;
    size_t& largest_;
  };

  size_t largest_ = 0;
};

TEST(ReshardTest, ALargeVariableIsCopiedInPieces) {
  MemoryFileSystem disk;
  const StoreModel model = ModelOn({{.name = "big", .shape = {3 << 20}}}, {});  // 12 MiB
  const auto arena = *Arena::Create(model, 1);
  Manifest manifest = {.save_id = "a"};
  ASSERT_TRUE(disk.CreateDirectory("from").ok());
  const std::string part = PartFileName(0, 0, 1);
  const auto written =
      WritePart(disk, JoinPath("from", TemporaryName(part, "a")), model, ViewOf(model, TakeSnapshot(*arena)));
  AddVariablesToManifest(model, manifest);
  AddPartToManifest(model, 0, manifest);
  manifest.parts.push_back({part, written->bytes, written->crc32c});
  ASSERT_EQ(CommitManifest(disk, "from", manifest), absl::OkStatus());
  MeasuringFileSystem files(disk);
  const auto from = *CheckpointReader::Open(files, "from/model.ckpt-0");
  ASSERT_TRUE(ReshardCheckpoint(files, *from, "to", {}, "b").ok());
  EXPECT_LE(files.largest(), 4u << 20);
  const auto to = *CheckpointReader::Open(files, "to/model.ckpt-0");
  EXPECT_THAT(*DiffCheckpoints(*from, *to), IsEmpty());
}

}  // namespace
}  // namespace muster::reshard_test
