// The source of a ps's checkpoints, in the background: which requests wait for it when the ps ends.
#include "muster/store/checkpoints/part_saver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "muster/base/files/forwarding_file_system.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/messages/messages.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::part_saver_test {
namespace {

class RecordingSink final : public Responder::Sink {
 public:
  explicit RecordingSink(std::vector<absl::Status>& answers) : answers_(answers) {}
  void Send(uint64_t, absl::Status status, absl::string_view, absl::Span<const ByteSpan>,
            std::shared_ptr<const void>) override {
    answers_.push_back(std::move(status));
  }

 private:
  std::vector<absl::Status>& answers_;
};

TEST(PartSaver, WhoWaitsAtTheEndIsAnsweredOnce) {
  SimulatedWorld world;
  EventLoop& loop = world.loop();
  MemoryFileSystem files;
  std::vector<absl::AnyInvocable<void()>> tasks;
  std::vector<absl::Status> answers;
  const auto responder = [&] { return Responder(std::make_unique<RecordingSink>(answers)); };
  PartSaver saver(
      loop, files, [&](absl::AnyInvocable<void()> task) { tasks.push_back(std::move(task)); }, "");
  std::shared_ptr<Arena> arena = *Arena::Create(ModelOn({{.name = "w", .shape = {4}}}, {}), 1);
  saver.Prepare(arena);
  saver.Save("part", true, responder());
  saver.Save("part", true, responder());  // on another connection
  saver.Commit("/model", "{}", {}, responder());
  saver.FindDirectory("/model", "a1",
                      [&](const absl::StatusOr<std::string>& found) { answers.push_back(found.status()); });
  saver.FailAll(absl::CancelledError("training has ended"));
  EXPECT_EQ(answers, std::vector<absl::Status>(4, absl::CancelledError("training has ended")));
  // Work under way is finished, and the next part works.
  const auto run = [&] {
    for (auto& task : std::exchange(tasks, {})) task();
    world.RunReady();
  };
  run();
  ASSERT_TRUE(saver.idle());
  saver.Prepare(arena);
  saver.Save("another part", true, responder());
  run();
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_TRUE(answers.back().ok()) << answers.back();
  EXPECT_TRUE(saver.idle());
}

class CountingDisk final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    ++reads;
    return ForwardingFileSystem::ReadFile(path);
  }
  absl::StatusOr<std::string> ReadShortFile(const std::string& path, size_t limit) override {
    ++reads;
    return ForwardingFileSystem::ReadShortFile(path, limit);
  }

  int reads = 0;
};

// A disk that hangs must not hold up the loop, on which all answers and heartbeats are.
TEST(PartSaver, TheDiskIsTouchedInTheBackgroundOnly) {
  SimulatedWorld world;
  MemoryFileSystem memory;
  CountingDisk files(memory);
  ASSERT_TRUE(AnnounceSave(memory, "/model", "a1").ok());
  std::vector<absl::AnyInvocable<void()>> tasks;
  PartSaver saver(
      world.loop(), files, [&](absl::AnyInvocable<void()> task) { tasks.push_back(std::move(task)); }, "");
  std::string found;
  saver.FindDirectory("/model", "a1", [&](const absl::StatusOr<std::string>& where) { found = where.value(); });
  world.RunReady();
  EXPECT_EQ(files.reads, 0);
  ASSERT_EQ(tasks.size(), 1u);
  tasks[0]();
  EXPECT_EQ(files.reads, 1);
  EXPECT_EQ(found, "");
  world.RunReady();
  EXPECT_EQ(found, "/model");
}

TEST(PartSaver, AMarkThatNobodyWantsIsGoneAtOnceAndNothingIsSavedAsideForIt) {
  SimulatedWorld world;
  EventLoop& loop = world.loop();
  MemoryFileSystem files;
  std::vector<absl::Status> answers;
  const auto responder = [&] { return Responder(std::make_unique<RecordingSink>(answers)); };
  PartSaver saver(
      loop, files, [](const absl::AnyInvocable<void()>&) { ADD_FAILURE() << "nothing is to be written"; }, "");
  std::shared_ptr<Arena> arena = *Arena::Create(ModelOn({{.name = "w", .shape = {4}}}, {}), 1);
  const std::vector<float> values = {1, 2, 3, 4};
  arena->Load({.generation = 1, .values = std::as_bytes(std::span(values))});
  saver.Prepare(arena);
  saver.Drop();
  EXPECT_TRUE(saver.idle());
  const std::vector<float> gradient(4, 1.0f);
  ASSERT_TRUE(arena->Apply(0, {.sequence = 1, .generation = 1}, std::as_bytes(std::span(gradient)), {}));
  float aside = -1;
  std::memcpy(&aside, arena->AsideValue(0).data(), sizeof aside);
  EXPECT_EQ(aside, 0);
  saver.Save("part", true, responder());
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(absl::IsOutOfRange(answers[0])) << answers[0];
}

// Keeps the bulk of the last answer, too.
class BulkSink final : public Responder::Sink {
 public:
  BulkSink(absl::Status& answer, std::vector<std::byte>& bulk) : answer_(answer), bulk_(bulk) {}
  void Send(uint64_t, absl::Status status, absl::string_view, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void>) override {
    answer_ = std::move(status);
    bulk_.clear();
    for (const ByteSpan segment : bulk) bulk_.insert(bulk_.end(), segment.begin(), segment.end());
  }

 private:
  absl::Status& answer_;
  std::vector<std::byte>& bulk_;
};

// A part that the chief fetches: a model of 40 bytes, the slots included.
class OpenPartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    arena_->Load({.generation = 1, .values = AsBytes(values_.data(), 5), .slots = {}});
    saver_.Prepare(arena_);
    expected_ = AsideAtTheMark();
  }
  Responder Answered() { return Responder(std::make_unique<BulkSink>(answer_, bulk_)); }
  absl::Status Open() {
    answer_ = absl::UnknownError("not answered");
    saver_.Open(true, Answered());
    world_.RunReady();
    return answer_;
  }
  absl::Status Fetch(uint64_t first, uint64_t bytes, bool of_mark = true) {
    answer_ = absl::UnknownError("not answered");
    saver_.Fetch(of_mark, first, bytes, Answered());
    world_.RunReady();
    return answer_;
  }
  void Pass(absl::Duration duration) {
    world_.loop().RunUntil([] { return false; }, world_.loop().Now() + duration);
  }
  std::vector<std::byte> AsideAtTheMark() {
    std::vector<std::byte> bytes(40);
    std::memcpy(bytes.data(), values_.data(), 20);
    return bytes;
  }
  bool AsideIsFree() { return CopyAside(*arena_, 0, 40) == std::vector<std::byte>(40); }
  std::vector<std::byte> Expected(uint64_t first, uint64_t bytes) {
    return {expected_.begin() + static_cast<ptrdiff_t>(first),
            expected_.begin() + static_cast<ptrdiff_t>(first + bytes)};
  }

  SimulatedWorld world_;
  MemoryFileSystem files_;
  PartSaver saver_{world_.loop(), files_,
                   [this](absl::AnyInvocable<void()> task) { world_.loop().Post(std::move(task)); }, ""};
  const std::vector<float> values_ = {1, 2, 3, 4, 5};
  std::shared_ptr<Arena> arena_ = *Arena::Create(
      ModelOn({{.name = "w", .shape = {3}}, {.name = "v", .shape = {2}}}, {.kind = RuleKind::kMomentum}), 1);
  std::vector<std::byte> expected_;
  absl::Status answer_;
  std::vector<std::byte> bulk_;
};

TEST_F(OpenPartTest, ItsPiecesAreOfTheMarkWhateverIsAppliedMeanwhile) {
  EXPECT_TRUE(absl::IsOutOfRange(Fetch(0, 40))) << "it isn't open yet";
  ASSERT_EQ(Open(), absl::OkStatus());
  EXPECT_FALSE(saver_.idle());
  const std::vector<float> gradient(3, 1.0f);
  ASSERT_TRUE(arena_->Apply(0, {.sequence = 1, .generation = 1}, AsBytes(gradient.data(), 3), {}));
  for (uint64_t first = 0; first <= 40; ++first) {
    for (uint64_t bytes = 0; bytes <= 40 - first; ++bytes) {
      ASSERT_EQ(Fetch(first, bytes), absl::OkStatus());
      ASSERT_EQ(bulk_, Expected(first, bytes)) << first << ", " << bytes;
    }
  }
  EXPECT_EQ(Open(), absl::OkStatus()) << "asked again: the answer was lost";
  saver_.Drop();
  world_.RunReady();
  EXPECT_TRUE(saver_.idle());
  EXPECT_TRUE(AsideIsFree());
  EXPECT_TRUE(absl::IsOutOfRange(Fetch(0, 40)));
}

TEST_F(OpenPartTest, NothingBeyondItIsReadNorMoreThanTheMostAtOnce) {
  ASSERT_EQ(Open(), absl::OkStatus());
  for (const auto& [first, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 41}, {40, 1}, {41, 0}, {~uint64_t{0}, 1}, {1, ~uint64_t{0}}, {0, kMostFetchedBytes + 1}})
    EXPECT_TRUE(absl::IsInvalidArgument(Fetch(first, bytes))) << first << ", " << bytes;
  EXPECT_TRUE(absl::IsOutOfRange(Fetch(0, 40, /*of_mark=*/false)));
  EXPECT_EQ(Fetch(0, 40), absl::OkStatus());
}

TEST_F(OpenPartTest, ItsMemoryIsFreedOnceTheChiefFetchesNothing) {
  ASSERT_EQ(Open(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    Pass(PartSaver::kFetchPatience - absl::Seconds(1));
    ASSERT_EQ(Fetch(0, 40), absl::OkStatus());
  }
  EXPECT_FALSE(AsideIsFree());
  Pass(PartSaver::kFetchPatience + absl::Seconds(1));
  EXPECT_TRUE(absl::IsOutOfRange(Fetch(0, 40)));
  EXPECT_TRUE(AsideIsFree());
  EXPECT_TRUE(saver_.idle());
}

TEST_F(OpenPartTest, ValuesThatAreLoadedMeanwhileEndIt) {
  ASSERT_EQ(Open(), absl::OkStatus());
  ASSERT_EQ(Fetch(0, 8), absl::OkStatus());
  arena_->Load({.generation = 2, .values = AsBytes(values_.data(), 5), .slots = {}});
  EXPECT_TRUE(absl::IsFailedPrecondition(Fetch(8, 8))) << answer_;
  world_.RunReady();
  EXPECT_TRUE(saver_.idle());
}

}  // namespace
}  // namespace muster::part_saver_test
