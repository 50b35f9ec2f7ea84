// The input of a training run that is saved and killed: sessions, checkpoints and input together, on simulated ps.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "muster/data/dataset/dataset.h"
#include "muster/train/testing/training_process.h"

namespace muster::input_position_test {
namespace {

// The rows of each batch, in order.
using Batches = std::vector<std::vector<int64_t>>;

Dataset Rows(size_t rows) {
  std::vector<int64_t> labels(rows);
  std::iota(labels.begin(), labels.end(), int64_t{0});
  return Dataset::FromMemory({.labels = Array::Of({static_cast<int64_t>(rows)}, labels), .has_labels = true});
}

// Trains `steps` steps in its own cluster, which then vanishes without an end, as if killed. Saves every `save_steps`.
Batches Train(FileSystem& disk, const Dataset& data, int steps, int64_t save_steps) {
  SimulatedStore store(1, {"chief:0"});
  store.KillPs(0);
  store.StartPs(0, &disk);
  TrainingProcess chief(store, "chief:0", {.files = &disk});
  auto input = data.Shuffle({.seed = 3}).Batch(4).Repeat().Prefetch(2).Open().value();
  Batches batches;
  Example batch;
  chief.source.on_step = [&](double loss) -> absl::StatusOr<double> {
    EXPECT_TRUE(*input->Next(batch));
    const auto labels = batch.labels.As<int64_t>();
    batches.emplace_back(labels.begin(), labels.end());
    return loss;
  };
  {
    Session session =
        chief.MakeSession({.checkpoint_dir = "model",
                           .save_checkpoint_steps = save_steps,
                           .saveables = {{"input", [&] { return input->SavePosition(); },
                                          [&](const std::string& saved) { return input->RestorePosition(saved); }}}});
    EXPECT_EQ(session.Start(), absl::OkStatus());
    for (int i = 0; i < steps; ++i) EXPECT_EQ(session.Run(), absl::OkStatus());
  }
  input->Stop();
  return batches;
}

Batches Joined(Batches first, const Batches& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(InputPositionTest, AKilledRunGoesOnWithTheBatchThatWouldHaveCome) {
  const Dataset data = Rows(23);
  MemoryFileSystem undisturbed;
  const Batches expected = Train(undisturbed, data, 20, 5);
  MemoryFileSystem disk;
  const Batches first = Train(disk, data, 10, 5);  // saved at the 10th step, the last one
  EXPECT_EQ(Joined(first, Train(disk, data, 10, 5)), expected);
}

TEST(InputPositionTest, KilledAgainBeforeItsNextSave) {
  const Dataset data = Rows(23);
  MemoryFileSystem undisturbed;
  const Batches expected = Train(undisturbed, data, 20, 5);
  MemoryFileSystem disk;
  const Batches first = Train(disk, data, 10, 5);
  // Each of these saves the restored step when it starts, and is killed before the next save.
  for (const int steps : {0, 3, 1}) {
    Batches lost = Train(disk, data, steps, 100);
    EXPECT_EQ(Joined(first, lost), Batches(expected.begin(), expected.begin() + 10 + steps));
  }
  EXPECT_EQ(Joined(first, Train(disk, data, 10, 5)), expected);
}

}  // namespace
}  // namespace muster::input_position_test
