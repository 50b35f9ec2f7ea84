#include "muster/store/checkpoints/checkpoint_part.h"

#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::checkpoint_part_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {
    {.name = "w", .shape = {40000}},
    {.name = "frozen", .shape = {3}, .kind = VariableKind::kFrozen},
    {.name = "b", .dtype = DType::kFloat64, .shape = {2}},
};
const RuleSpec kAdam = {.kind = RuleKind::kAdam};

// Returns an arena with something in every value and slot; the stripes of w have been updated 7, 9 and 8 times.
std::unique_ptr<Arena> FilledArena(const StoreModel& model) {
  auto arena = *Arena::Create(model, 1);
  double next = 1;
  const auto filled = [&next](uint64_t size) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i + sizeof(double) <= bytes.size(); i += sizeof(double)) {
      std::memcpy(bytes.data() + i, &next, sizeof(double));
      next += 1;
    }
    return bytes;
  };
  const std::vector<std::byte> values = filled(arena->layout().value_bytes());
  const std::vector<std::byte> slots = filled(arena->layout().slot_bytes());
  const std::vector<uint64_t> steps = {7, 9, 8, 0, 5};
  arena->Load({.values = values, .slots = slots, .steps = steps});
  return arena;
}

// Saves one ps's state as a committed checkpoint of one part.
absl::Status SaveAlone(FileSystem& files, const StoreModel& model, const PartSnapshot& snapshot) {
  Manifest manifest;
  manifest.global_step = 1;
  manifest.save_id = "a";
  absl::Status status = files.CreateDirectory("d");
  const std::string part = PartFileName(1, 0, 1);
  const auto written =
      WritePart(files, JoinPath("d", TemporaryName(part, manifest.save_id)), model, ViewOf(model, snapshot));
  status.Update(written.status());
  if (!status.ok()) return status;
  AddVariablesToManifest(model, manifest);
  AddPartToManifest(model, 0, manifest);
  manifest.parts.push_back({part, written->bytes, written->crc32c});
  return CommitManifest(files, "d", manifest);
}

TEST(CheckpointPartTest, SizesCountSlotsOfTrainableSlicesOnly) {
  const StoreModel model = ModelOn(kVariables, kAdam);
  EXPECT_EQ(ValueBytes(model), 160000u + 12u + 16u);
  EXPECT_EQ(SlotBytes(model), 2u * (160000u + 16u));
  EXPECT_EQ(SlotBytes(ModelOn(kVariables, {})), 0u);
}

TEST(CheckpointPartTest, ASnapshotComesBackAsItWas) {
  const StoreModel model = ModelOn(kVariables, kAdam);
  const auto arena = FilledArena(model);
  const PartSnapshot snapshot = TakeSnapshot(*arena);
  EXPECT_THAT(snapshot.steps, ElementsAre(7, 9, 8, 0, 5));
  MemoryFileSystem files;
  ASSERT_EQ(SaveAlone(files, model, snapshot), absl::OkStatus());
  const auto reader = CheckpointReader::Open(files, "d/model.ckpt-1").value();
  EXPECT_EQ(CheckModelOfCheckpoint(reader->manifest(), kVariables, "d"), absl::OkStatus());
  const auto part = ReadPart(*reader, model).value();
  EXPECT_TRUE(part.with_slots);
  EXPECT_EQ(part.snapshot.bytes, snapshot.bytes);
  EXPECT_EQ(part.snapshot.steps, snapshot.steps);
}

TEST(CheckpointPartTest, APartInPiecesIsTheSameFileWhateverTheMemory) {
  const StoreModel model = ModelOn(kVariables, kAdam);
  const PartSnapshot snapshot = TakeSnapshot(*FilledArena(model));
  MemoryFileSystem files;
  const auto whole = WritePart(files, "whole", model, ViewOf(model, snapshot)).value();
  for (const uint64_t memory : {8, 1000, 160000, 1 << 20}) {
    SCOPED_TRACE(memory);
    size_t reads = 0;
    const auto read = [&](std::span<const PartPiece> pieces) {
      ++reads;
      uint64_t bytes = 0;
      for (const PartPiece& piece : pieces) {
        bytes += piece.into.size();
        std::memcpy(piece.into.data(), snapshot.bytes.data() + piece.first, piece.into.size());
      }
      EXPECT_LE(bytes, memory);
      return absl::OkStatus();
    };
    const auto written = WritePartInPieces(files, "pieces", model, snapshot.steps, memory, read).value();
    EXPECT_EQ(*files.ReadFile("pieces"), *files.ReadFile("whole"));
    EXPECT_EQ(written.bytes, whole.bytes);
    EXPECT_EQ(written.crc32c, whole.crc32c);
    EXPECT_EQ(reads, (snapshot.bytes.size() + memory - 1) / memory);
  }
}

TEST(CheckpointPartTest, APieceThatDoesNotComeEndsTheWriting) {
  const StoreModel model = ModelOn(kVariables, kAdam);
  const PartSnapshot snapshot = TakeSnapshot(*FilledArena(model));
  MemoryFileSystem files;
  int reads = 0;
  const auto read = [&](std::span<const PartPiece>) {
    return ++reads == 2 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  EXPECT_EQ(WritePartInPieces(files, "part", model, snapshot.steps, 1000, read).status(),
            absl::UnavailableError("gone"));
  EXPECT_EQ(reads, 2);
  EXPECT_TRUE(absl::IsDataLoss(WritePartInPieces(files, "part", model, {1}, 1000, read).status()));
}

TEST(CheckpointPartTest, AStripeThatCoversSeveralOldOnesTakesTheLargestCounter) {
  const StoreModel model = ModelOn(kVariables, kAdam);
  MemoryFileSystem files;
  ASSERT_EQ(SaveAlone(files, model, TakeSnapshot(*FilledArena(model))), absl::OkStatus());
  const auto reader = CheckpointReader::Open(files, "d/model.ckpt-1").value();
  // w in two parts: elements 0 … 19,999 (old stripes 7 and 9) and 20,000 … 39,999 (9 and 8), two stripes each.
  std::vector<std::vector<uint64_t>> steps;
  for (int ps = 0; ps < 2; ++ps) {
    const auto part =
        ReadPart(*reader, ModelOn(kVariables, kAdam, 2, ps, {.kind = Partitioning::Kind::kFixed, .shards = 2})).value();
    steps.push_back(part.snapshot.steps);
  }
  // ps 0 has the first half of w, of frozen and of b; ps 1 the rest.
  EXPECT_THAT(steps[0], ElementsAre(7, 9, 0, 5));
  EXPECT_THAT(steps[1], ElementsAre(9, 8, 0, 5));
}

TEST(CheckpointPartTest, AVariableThatIsNotThereIsAnError) {
  const StoreModel model = ModelOn(kVariables, kAdam);
  MemoryFileSystem files;
  ASSERT_EQ(SaveAlone(files, model, TakeSnapshot(*FilledArena(model))), absl::OkStatus());
  const auto reader = CheckpointReader::Open(files, "d/model.ckpt-1").value();
  const auto part = ReadPart(*reader, ModelOn({{.name = "u", .shape = {4}}}, kAdam));
  EXPECT_FALSE(part.ok());
  EXPECT_THAT(std::string(part.status().message()), HasSubstr("u"));
}

}  // namespace
}  // namespace muster::checkpoint_part_test
