// What the checkpoints of a ps come from, in the background: who waits for it when the ps comes to its end.
#include "muster/store/part_saver.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/store/simulated_store.h"

namespace muster {
namespace {

class RecordingSink final : public Responder::Sink {
 public:
  explicit RecordingSink(std::vector<absl::Status>& answers) : answers_(answers) {}
  void Send(absl::Status status, std::string, Segments, std::shared_ptr<const void>) override {
    answers_.push_back(std::move(status));
  }

 private:
  std::vector<absl::Status>& answers_;
};

TEST(PartSaver, WhoWaitsAtTheEndIsAnsweredOnce) {
  SimulatedClock clock;
  SimulatedEventLoop loop(clock);
  MemoryFileSystem files;
  std::vector<absl::AnyInvocable<void()>> tasks;
  std::vector<absl::Status> answers;
  const auto responder = [&] { return Responder(std::make_unique<RecordingSink>(answers)); };
  PartSaver saver(loop, files, [&](absl::AnyInvocable<void()> task) { tasks.push_back(std::move(task)); });
  std::shared_ptr<Arena> arena = *Arena::Create(ModelOn({{.name = "w", .shape = {4}}}, {}), 1);
  saver.Export(arena, responder());
  saver.Export(arena, responder());
  saver.Commit("/model", "{}", {}, responder());
  saver.FailAll(absl::CancelledError("training has ended"));
  EXPECT_EQ(answers, std::vector<absl::Status>(3, absl::CancelledError("training has ended")));
  // What was under way comes to its end, and the next one works.
  saver.Export(arena, responder());
  while (!tasks.empty()) {
    for (auto& task : std::exchange(tasks, {})) task();
    loop.RunUntil([] { return false; }, loop.Now());
  }
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_TRUE(answers.back().ok()) << answers.back();
  EXPECT_TRUE(saver.idle());
}

}  // namespace
}  // namespace muster
