// An input pipeline: a description of where examples come from and what happens to them, made stage by stage
// (TensorFlow's tf.data.Dataset, without the graph). docs/input.md explains the stages, their order and what is
// deterministic: the elements of a stream are a function of the description alone, so that all workers agree on them
// without talking and a restarted one goes on where its checkpoint says.
//
//   Dataset::FromCsv({"train.csv"}, {.label = "species"})
//       .Shuffle({.seed = 1}).Shard(workers, worker).Batch(32).Repeat()
//
// A value: copies share what they describe, which nobody changes. Thread-safe. A mistake (a batch of 0) is told when a
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
  // Row i of every array is example i (TensorFlow's from_tensor_slices). The arrays' first dimensions agree.
  static Dataset FromMemory(Example rows);
  // One feature "features" [width] and an int64 label [].
  static Dataset FromRows(std::shared_ptr<const LabelledRows> rows);
  // One after the other. See file_sources.h for what a feature of theirs is called.
  static Dataset FromCsv(std::vector<std::string> files, CsvColumns columns, FileSystem& system = PosixFileSystem());
  // "image" uint8 [height, width] (or whatever the file holds beyond its first dimension) and an int64 label [].
  static Dataset FromIdx(std::string images, std::string labels, FileSystem& system = PosixFileSystem());
  // A folder for each class (in alphabetical order, numbered from 0), PNG and PPM/PGM files in it, all of one size:
  // "image" uint8 [channels, height, width].
  static Dataset FromImageFolders(std::string directory, ImageFolderOptions options = {},
                                  FileSystem& system = PosixFileSystem());
  // Whatever else there is: `open` makes a stream from the beginning; called once an epoch. `description` is what
  // positions of another source aren't restored by.
  using OpenFunction = OpenStreamFunction;
  static Dataset FromStream(std::string description, OpenFunction open);
  // Some of each in turn, `options.cycle_length` of them at a time, as TensorFlow's interleave over files.
  static Dataset Interleave(std::vector<Dataset> sources, InterleaveOptions options = {});

  Dataset Map(MapFunction function, MapOptions options = {}) const;
  Dataset Shuffle(ShuffleOptions options = {}) const;
  // Of every `shards` examples this reader takes number `shard`. Before Batch, and after Shuffle with the same seed
  // everywhere: then each example goes to exactly one worker an epoch, to another one in the next.
  Dataset Shard(size_t shards, size_t shard) const;
  // Instead of Shard: which rows this reader takes is asked of `work`, unit by unit, so that each example is used once
  // an epoch whatever workers come and go (work_source.h). Of a source whose size is known (memory, IDX, Shuffle and
  // Map over them); behind it stand Map, Batch (a batch never reaches over the end of a unit) and Prefetch alone, as
  // `work` counts rows and epochs. Needs ExampleStream::StepOver.
  Dataset ShareBy(std::shared_ptr<WorkSource> work) const;
  Dataset Batch(size_t size, bool drop_remainder = false) const;  // never over the end of an epoch, if before Repeat
  Dataset Repeat(int64_t epochs = 0) const;                       // 0: for ever
  Dataset Take(int64_t count) const;
  Dataset Skip(int64_t count) const;
  // Keeps what comes out of the stages before it in memory, from the first epoch on.
  Dataset Cache() const;
  // Elements made ready by a thread, in a bounded queue; 0: by the one that draws them, when it does.
  Dataset Prefetch(size_t depth = 4) const;

  // How many elements a stream has, where that can be said without reading them; nothing for an endless one either.
  std::optional<int64_t> size() const;
  // The stages, one after the other: "memory(1438 rows).shuffle(seed=1).batch(50)".
  std::string Describe() const;

  // A stream from the beginning. InvalidArgument naming the stage and its mistake; errors of the sources (a file that
  // isn't there) come from here or from the first Next.
  absl::StatusOr<std::unique_ptr<ExampleStream>> Open() const;

 private:
  explicit Dataset(std::shared_ptr<const DatasetStage> stage) : stage_(std::move(stage)) {}

  std::shared_ptr<const DatasetStage> stage_;
};

}  // namespace muster
