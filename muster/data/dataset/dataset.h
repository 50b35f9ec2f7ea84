// An input pipeline: a description of where examples come from and what happens to them, built stage by stage
// (TensorFlow's tf.data.Dataset, without the graph). docs/input.md explains the stages, their order and what is
// deterministic: the elements of a stream depend on the description alone, so that all workers agree on them without
// communication and a restarted one goes on where its checkpoint says.
//
//   Dataset::FromCsv({"train.csv"}, {.label = "species"})
//       .Shuffle({.seed = 1}).Shard(workers, worker).Batch(32).Repeat()
//
// A value: copies share their description, which is immutable. Thread-safe. A mistake (a batch of 0) is reported when a
// stream is opened, with the name of its stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/data/example.h"
#include "muster/data/example_stream.h"
#include "muster/data/labelled_rows.h"
#include "muster/data/sources/file_sources.h"
#include "muster/data/stages/stage_options.h"
#include "muster/data/work_source.h"

namespace muster {

class DatasetStage;

class Dataset {
 public:
  // Row i of every array is example i (TensorFlow's from_tensor_slices). The arrays' first dimensions must agree.
  static Dataset FromMemory(Example rows);
  // Examples have one feature "features" [width] and an int64 label [].
  static Dataset FromRows(std::shared_ptr<const LabelledRows> rows);
  // Reads one file after the other. file_sources.h says what their features are called.
  static Dataset FromCsv(std::vector<std::string> files, CsvColumns columns, FileSystem& system = PosixFileSystem());
  // Examples have "image" uint8 [height, width] (or whatever dimensions the file has after the first) and an int64
  // label [].
  static Dataset FromIdx(std::string images, std::string labels, FileSystem& system = PosixFileSystem());
  // Reads one folder per class (in alphabetical order, numbered from 0) of PNG and PPM/PGM files, all of one size:
  // "image" uint8 [channels, height, width].
  static Dataset FromImageFolders(std::string directory, ImageFolderOptions options = {},
                                  FileSystem& system = PosixFileSystem());
  // For any other source: `open` makes a stream from the beginning and is called once per epoch. A position is restored
  // only to a source with the same `description`.
  using OpenFunction = OpenStreamFunction;
  static Dataset FromStream(std::string description, OpenFunction open);
  // Takes some examples of each in turn, `options.cycle_length` sources at a time, as TensorFlow's interleave over
  // files.
  static Dataset Interleave(std::vector<Dataset> sources, InterleaveOptions options = {});

  Dataset Map(MapFunction function, MapOptions options = {}) const;
  Dataset Shuffle(ShuffleOptions options = {}) const;
  // Takes example number `shard` of every `shards` examples. Put it before Batch, and after Shuffle with the same seed
  // everywhere: then each example goes to exactly one worker per epoch, and to another one in the next.
  Dataset Shard(size_t shards, size_t shard) const;
  // Use instead of Shard: asks `work`, unit by unit, which rows this reader takes, so that each example is used once
  // per epoch whatever workers come and go (work_source.h). Needs a source whose size is known (memory, IDX, Shuffle
  // and Map over them). Only Map, Batch (a batch never crosses the end of a unit) and Prefetch may follow, as `work`
  // counts rows and epochs. The training loop must call ExampleStream::StepOver.
  Dataset ShareBy(std::shared_ptr<WorkSource> work) const;
  Dataset Batch(size_t size, bool drop_remainder = false) const;  // before Repeat, batches end with the epoch
  Dataset Repeat(int64_t epochs = 0) const;                       // 0: for ever
  Dataset Take(int64_t count) const;
  Dataset Skip(int64_t count) const;
  // Keeps the output of the stages before it in memory, from the first epoch on.
  Dataset Cache() const;
  // A thread prepares up to `depth` elements ahead, in a queue. 0: the thread that draws an element makes it then.
  Dataset Prefetch(size_t depth = 4) const;

  // Returns how many elements a stream has, if that is known without reading them; nullopt also for an endless one.
  std::optional<int64_t> size() const;
  // Describes the stages in order: "memory(1438 rows).shuffle(seed=1).batch(50)".
  std::string Describe() const;

  // Opens a stream at the beginning. InvalidArgument names the stage and its mistake. Errors of the sources (a missing
  // file) come from here or from the first Next.
  absl::StatusOr<std::unique_ptr<ExampleStream>> Open() const;

 private:
  explicit Dataset(std::shared_ptr<const DatasetStage> stage) : stage_(std::move(stage)) {}

  std::shared_ptr<const DatasetStage> stage_;
};

}  // namespace muster
