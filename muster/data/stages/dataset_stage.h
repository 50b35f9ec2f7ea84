// The parts of a Dataset, and the interface for adding a source: a chain of stages, each a constant description that
// makes streams. There are two kinds. A stage whose rows can be read by number (memory, IDX files, and Map, Shuffle,
// Shard, Take, Skip, ShareBy, Cache over them) says in which order they come and who reads them, so that orders are
// made of numbers, no row is copied before it is needed, and Batch gathers rows straight into its arrays. Every other
// stage makes streams that draw from the streams of the stages before it.
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

// How far a stream has come; a position in a checkpoint is made from it.
struct Place {
  std::vector<int64_t> numbers;  // each stage's own, then those of the stages before it
  int64_t epoch = 0;             // counted by the last Repeat, or by the shared work
  int64_t units = 0;             // units of work (ShareBy) whose rows have all been handed out

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

// Returns the numbers of a Place in the order in which they were written.
class PlaceReader {
 public:
  explicit PlaceReader(std::span<const int64_t> numbers) : numbers_(numbers) {}

  // InvalidArgument: there are no more, or the number isn't in 0 ... `most`.
  absl::StatusOr<int64_t> Take(int64_t most = std::numeric_limits<int64_t>::max());
  bool done() const { return numbers_.empty(); }

 private:
  std::span<const int64_t> numbers_;
};

// Passes through a stage's elements, one pass after the other. The stage must outlive it.
class StageStream {
 public:
  virtual ~StageStream() = default;

  // Goes to the beginning of an epoch (counted from 0). Called before the first Next and again for each further pass.
  // Errors: those of the source.
  [[nodiscard]] virtual absl::Status Begin(int64_t epoch) = 0;

  // As ExampleStream::Next. `into` may hold anything before. After false or an error it isn't called again before the
  // next Begin.
  virtual absl::StatusOr<bool> Next(Example& into) = 0;

  // Next in two steps, for stages that can do most of their work in parallel: first Draw, by one thread at a time, then
  // Make with the result of Draw, by any thread, several at once. A caller uses either these or Next. By default Draw
  // does everything.
  virtual absl::StatusOr<bool> Draw(Example& into, size_t& row);
  [[nodiscard]] virtual absl::Status Make(Example& into, size_t row);

  // Appends what Seek needs to go on after the last element handed out.
  virtual void Tell(Place& place) const = 0;

  // Called after Begin instead of the Nexts that led to the place. OutOfRange: there are fewer elements than that.
  // InvalidArgument: no such place. Otherwise as Begin.
  [[nodiscard]] virtual absl::Status Seek(PlaceReader& place) = 0;

  // Goes to the beginning of an epoch as counted by the last Repeat; does nothing without one. Called after Begin
  // instead of Seek.
  [[nodiscard]] virtual absl::Status SeekEpoch(int64_t epoch);

  // Ends threads and waits for them; a Next that waits returns Cancelled. From any thread, more than once. No Next
  // follows.
  virtual void Stop() {}
};

// A source that can only be read from its beginning (lines of a file). Its position is the number of elements; to
// restore it, as many elements are read again.
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
  // Skips one element; false: there is none. Reads it, unless there is a quicker way.
  virtual absl::StatusOr<bool> Pass() { return Read(passed_); }

 private:
  int64_t read_ = 0;
  Example passed_;
};

// Reads rows by number. Thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;

  virtual size_t rows() const = 0;
  // Reads row `row` as an example. Reuses the memory of `into`, which may hold anything.
  [[nodiscard]] virtual absl::Status Read(size_t row, Example& into) const = 0;
  // Reads rows as a batch: every array of `into` is [rows.size(), ...]. `scratch` holds one row; the caller keeps it so
  // that its memory is reused. By default rows are read one by one and stacked.
  [[nodiscard]] virtual absl::Status ReadBatch(std::span<const size_t> rows, Example& into, Example& scratch) const;
  // How many threads should call Read at once.
  virtual int threads() const { return 1; }
};

// Reads rows of arrays in memory; row i of each makes example i (Dataset::FromMemory). Their first dimensions must
// agree.
std::shared_ptr<const RowReader> ReadRowsOf(std::shared_ptr<const Example> rows);

class DatasetStage {
 public:
  virtual ~DatasetStage() = default;

  // Returns "shuffle(seed=1)". It must contain everything that the elements and their order depend on.
  virtual std::string Name() const = 0;
  // False: elements and order are those of the stages before it (Prefetch).
  virtual bool ChangesElements() const { return true; }
  // Null for a source.
  virtual const DatasetStage* before() const { return nullptr; }
  // Returns this stage's own mistake, without its name: WrongOptionError.
  [[nodiscard]] virtual absl::Status Check() const { return absl::OkStatus(); }
  // Returns the number of elements in one pass, if known without reading them.
  virtual std::optional<int64_t> size() const { return std::nullopt; }
  // True if a pass has no end, as far as the stages know.
  virtual bool endless() const { return before() != nullptr && before()->endless(); }

  // Called after Check succeeded for this stage and all before it; Begin follows. By default: the rows of OpenReader in
  // the order of FillOrder.
  virtual absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const;

  // True if rows can be read by number; then the functions below work.
  virtual bool indexed() const { return false; }
  // Errors: those of the source. May be called often, by any thread.
  virtual absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const;
  // Fills `order` with the reader's rows in the order of an epoch. By default, and in a source: 0 ... rows - 1.
  virtual void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const;
  // Returns the source of this reader's places in that order; null: it reads all (every stage except ShareBy and later
  // ones).
  virtual WorkSource* work() const { return before() != nullptr ? before()->work() : nullptr; }

  // Returns "memory(1438 rows).shuffle(seed=1).batch(50)". `elements_only`: leaves out stages that don't change
  // elements.
  std::string Describe(bool elements_only = false) const;
  // Returns the first mistake from the source on, as a wrong configuration: "batch: a size of 0; accepted: 1 or more
  // (in memory(5 rows).batch(0))".
  [[nodiscard]] absl::Status CheckAll() const;
};

}  // namespace muster
