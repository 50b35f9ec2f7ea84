// A chief that saves into the folder "model", with ps of its own, in a simulated world. For tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/files/memory_file_system.h"
#include "muster/train/saving/saver.h"
#include "muster/train/testing/training_process.h"

namespace muster {

inline const std::vector<VariableSpec> kSavedVariables = {
    {.name = "w", .shape = {50, 900}},
    {.name = "b", .shape = {7}},
    {.name = "scale"},
    {.name = "none", .shape = {0, 3}},
    {.name = "frozen", .shape = {5}, .kind = VariableKind::kFrozen},
    {.name = "mean", .shape = {6}, .kind = VariableKind::kBuffer},
};
inline const RuleSpec kSavedRule = {.kind = RuleKind::kAdam, .learning_rate = 0.1};
inline const std::vector<std::string> kSavingTasks = {"chief:0", "worker:0"};

// The names in that folder.
inline std::vector<std::string> SavedNames(FileSystem& files) { return files.ListDirectory("model").value(); }

// A chief with ps of its own, all on one disk unless told otherwise.
struct SavingJob {
  SavingJob(MemoryFileSystem& disk, int num_ps,
            TrainingOptions options = {.variables = kSavedVariables, .rule = kSavedRule})
      : store(num_ps, kSavingTasks) {
    for (int ps = 0; ps < num_ps; ++ps) MoveToDisk(ps, disk);
    options.files = &disk;
    chief = std::make_unique<TrainingProcess>(store, "chief:0", options);
    saver = std::make_unique<Saver>(disk, store.loop, *chief->client, "model", SaverOptions{});
  }
  void MoveToDisk(int ps, MemoryFileSystem& disk) {
    store.KillPs(ps);
    store.StartPs(ps, &disk);
  }
  void Start() {
    chief->source.values(4) = {1, 2, 3, 4, 5};
    chief->source.values(5) = {6, 5, 4, 3, 2, 1};
    chief->StartAsChief();
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) chief->Step();
  }
  // Restores as a session does.
  absl::StatusOr<std::optional<int64_t>> Restore() {
    EXPECT_EQ(chief->client->Join(true), absl::OkStatus());
    chief->client->Bind(chief->algorithm->binding());
    auto step = saver->RestoreLatest();
    if (step.ok() && step->has_value()) {
      EXPECT_EQ(chief->client->Pull(PullWhat::kEverything), absl::OkStatus());
    }
    return step;
  }
  std::vector<std::vector<float>> Values() {
    std::vector<std::vector<float>> values;
    for (size_t i = 0; i < chief->source.variables().size(); ++i) values.push_back(chief->source.values(i));
    return values;
  }

  SimulatedStore store;
  std::unique_ptr<TrainingProcess> chief;
  std::unique_ptr<Saver> saver;
};

}  // namespace muster
