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
  saver.Export(true, responder());
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

}  // namespace
}  // namespace muster::part_saver_test
