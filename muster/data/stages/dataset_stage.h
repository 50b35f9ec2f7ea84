// What a Dataset is made of, and how a source is added to it: a chain of stages, each a constant description that makes
// streams. There are two kinds. A stage whose rows can be read by number (memory, IDX files, and Map, Shuffle, Shard,
// Take, Skip, ShareBy, Cache over them) says in which order they come and who reads them, so that orders are made of
// numbers, no row is copied before it is wanted, and Batch gathers rows straight into its arrays. Every other stage
// makes streams that draw from the streams of the stages before it.
//
// Stages are thread-safe; a stream is used by one thread, except for Stop and Make. Internal to muster/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/example.h"
#include "muster/data/work_source.h"

namespace muster {

// How far a stream has come: what a position in a checkpoint is made of.
struct Place {
  std::vector<int64_t> numbers;  // each stage's own, then those of the stages before it
  int64_t epoch = 0;             // as the last Repeat, or the work that is shared, counts them
  int64_t units = 0;             // of work (ShareBy) all of whose rows have been handed out

  void Clear() {
    numbers.clear();
    epoch = 0;
    units = 0;
  }
  void Append(const Place& other) {
    numbers.insert(numbers.end(), other.numbers.begin(), other.numbers.end());
    epoch = other.epoch;
    units = other.units;
  }
};

// Gives the numbers of a Place back in the order in which they were told.
class PlaceReader {
 public:
  explicit PlaceReader(std::span<const int64_t> numbers) : numbers_(numbers) {}

  // InvalidArgument: there are no more, or it isn't in 0 ... `most`.
  absl::StatusOr<int64_t> Take(int64_t most = std::numeric_limits<int64_t>::max());
  bool done() const { return numbers_.empty(); }

 private:
  std::span<const int64_t> numbers_;
};

// One pass after the other through a stage's elements. Outlived by its stage.
class StageStream {
 public:
  virtual ~StageStream() = default;

  // Goes to the beginning of an epoch (counted from 0); before the first Next, and again for each further pass.
  // Errors: those of the source.
  [[nodiscard]] virtual absl::Status Begin(int64_t epoch) = 0;

  // As ExampleStream::Next. What `into` holds before is of any kind. After false or an error it isn't called again
  // before the next Begin.
  virtual absl::StatusOr<bool> Next(Example& into) = 0;

  // Next in two steps, where most of the work can be done beside others' work: first Draw, by one thread at a time,
  // then Make with what Draw left, by any thread, several at once. Whoever calls these doesn't call Next. By default
  // Draw does it all.
  virtual absl::StatusOr<bool> Draw(Example& into, size_t& row);
  [[nodiscard]] virtual absl::Status Make(Example& into, size_t row);

  // Appends what Seek needs to go on behind the last element handed out.
  virtual void Tell(Place& place) const = 0;

  // Behind a Begin, in place of the Nexts that led there. OutOfRange: there are fewer elements than that.
  // InvalidArgument: no such place. Otherwise as Begin.
  [[nodiscard]] virtual absl::Status Seek(PlaceReader& place) = 0;

  // To the beginning of an epoch as the last Repeat counts them; nothing to do where there is none. Behind a Begin, in
  // place of a Seek.
  [[nodiscard]] virtual absl::Status SeekEpoch(int64_t epoch);

  // Ends threads and waits for them; a Next that waits is Cancelled. From any thread, more than once. No Next follows.
  virtual void Stop() {}
};

// A source that can only be read from its beginning (lines of a file): the position is the number of elements, and so
// many are read again to come back to it.
class SequentialStream : public StageStream {
 public:
  absl::Status Begin(int64_t epoch) final;
  absl::StatusOr<bool> Next(Example& into) final;
  void Tell(Place& place) const final;
  absl::Status Seek(PlaceReader& place) final;

 protected:
  [[nodiscard]] virtual absl::Status Rewind(int64_t epoch) = 0;
  // As Next.
  virtual absl::StatusOr<bool> Read(Example& into) = 0;
  // Passes by one element; false: there is none. Reads it, unless there is a quicker way.
  virtual absl::StatusOr<bool> Pass() { return Read(passed_); }

 private:
  int64_t read_ = 0;
  Example passed_;
};

// Rows that are read by number. Thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;

  virtual size_t rows() const = 0;
  // Row `row` as an example. Reuses the memory of `into`, which holds anything.
  [[nodiscard]] virtual absl::Status Read(size_t row, Example& into) const = 0;
  // Rows as a batch: every array of `into` is [rows.size(), ...]. `scratch` is for one row, kept by the caller for its
  // memory. Unless a reader has a quicker way, rows are read and stacked.
  [[nodiscard]] virtual absl::Status ReadBatch(std::span<const size_t> rows, Example& into, Example& scratch) const;
  // So many should call Read at once.
  virtual int threads() const { return 1; }
};

// Rows of arrays in memory, row i of each makes example i (Dataset::FromMemory). The arrays' first dimensions agree.
std::shared_ptr<const RowReader> ReadRowsOf(std::shared_ptr<const Example> rows);

class DatasetStage {
 public:
  virtual ~DatasetStage() = default;

  // "shuffle(seed=1)"; what stands in it is what the elements and their order depend on.
  virtual std::string Name() const = 0;
  // False: elements and order are those of the stages before it (Prefetch).
  virtual bool ChangesElements() const { return true; }
  // Null for a source.
  virtual const DatasetStage* before() const { return nullptr; }
  // This stage's own mistake, without its name: WrongOptionError.
  [[nodiscard]] virtual absl::Status Check() const { return absl::OkStatus(); }
  // Elements of one pass, where known without reading them.
  virtual std::optional<int64_t> size() const { return std::nullopt; }
  // A pass has no end, as far as the stages know.
  virtual bool endless() const { return before() != nullptr && before()->endless(); }

  // Once Check has been good for it and all before it. Begin comes next. By default: the rows of OpenReader in the
  // order of FillOrder.
  virtual absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const;

  // True: rows can be read by number, and the rest is there.
  virtual bool indexed() const { return false; }
  // Errors: those of the source. May be called often, by any thread.
  virtual absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const;
  // The reader's rows in the order of an epoch. In a source: 0 ... rows - 1, as by default.
  virtual void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const;
  // Who says which places of that order are this reader's; null: all are (every stage but ShareBy and those behind it).
  virtual WorkSource* work() const { return before() != nullptr ? before()->work() : nullptr; }

  // "memory(1438 rows).shuffle(seed=1).batch(50)". `elements_only`: without stages that don't change elements.
  std::string Describe(bool elements_only = false) const;
  // The first mistake from the source on, which is a wrong configuration: "batch: a size of 0; accepted: 1 or more (in
  // memory(5 rows).batch(0))".
  [[nodiscard]] absl::Status CheckAll() const;
};

}  // namespace muster
