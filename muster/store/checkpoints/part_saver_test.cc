// The source of a ps's checkpoints, in the background: which requests wait for it when the ps ends.
#include "muster/store/checkpoints/part_saver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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
  PartSaver saver(loop, files, [&](absl::AnyInvocable<void()> task) { tasks.push_back(std::move(task)); });
  std::shared_ptr<Arena> arena = *Arena::Create(ModelOn({{.name = "w", .shape = {4}}}, {}), 1);
  saver.Prepare(arena);
  saver.Save("part", true, responder());
  saver.Save("part", true, responder());  // on another connection
  saver.Commit("/model", "{}", {}, responder());
  saver.FailAll(absl::CancelledError("training has ended"));
  EXPECT_EQ(answers, std::vector<absl::Status>(3, absl::CancelledError("training has ended")));
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
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_TRUE(answers.back().ok()) << answers.back();
  EXPECT_TRUE(saver.idle());
}

TEST(PartSaver, AMarkThatNobodyWantsIsGoneAtOnceAndNothingIsSavedAsideForIt) {
  SimulatedWorld world;
  EventLoop& loop = world.loop();
  MemoryFileSystem files;
  std::vector<absl::Status> answers;
  const auto responder = [&] { return Responder(std::make_unique<RecordingSink>(answers)); };
  PartSaver saver(loop, files, [](const absl::AnyInvocable<void()>&) { ADD_FAILURE() << "nothing is to be written"; });
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
