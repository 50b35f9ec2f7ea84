#include <utility>

#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

using CachedExamples = std::vector<Example>;

// Shared by the streams of a cache: all elements of an epoch, once one of the streams has reached its end.
class CacheMemory {
 public:
  std::shared_ptr<const CachedExamples> examples() const {
    MutexLock lock(mutex_);
    return examples_;
  }
  void Keep(std::shared_ptr<const CachedExamples> examples) {
    MutexLock lock(mutex_);
    examples_ = std::move(examples);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const CachedExamples> examples_ ABSL_GUARDED_BY(mutex_);  // null at first
};

class CacheStream final : public StreamAfter {
 public:
  CacheStream(std::unique_ptr<StageStream> before, CacheMemory& memory)
      : StreamAfter(std::move(before)), memory_(memory) {}

  // Every epoch equals the first: the contents don't depend on when they were read.
  absl::Status Begin(int64_t) override {
    next_ = 0;
    filling_.clear();
    kept_ = memory_.examples();
    return kept_ ? absl::OkStatus() : before().Begin(0);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    if (kept_) {
      if (next_ == kept_->size()) return false;
      into = (*kept_)[next_++];
      return true;
    }
    ASSIGN_OR_RETURN(const bool got, before().Next(into));
    if (got) {
      filling_.push_back(into);
      ++next_;
    } else {
      memory_.Keep(std::make_shared<const CachedExamples>(std::move(filling_)));
    }
    return got;
  }
  void Tell(Place& place) const override { place.numbers.push_back(static_cast<int64_t>(next_)); }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(const int64_t wanted, place.Take());
    Example passed;
    while (next_ < static_cast<size_t>(wanted)) {
      ASSIGN_OR_RETURN(const bool got, Next(passed));
      if (!got) return absl::OutOfRangeError("fewer examples are kept than were handed out");
    }
    return absl::OkStatus();
  }
  absl::Status SeekEpoch(int64_t) override { return absl::OkStatus(); }

 private:
  CacheMemory& memory_;  // owned by the stage, which outlives this
  std::shared_ptr<const CachedExamples> kept_;
  CachedExamples filling_;
  size_t next_ = 0;
};

// Keeps each row once it has been read.
class CacheReader final : public RowReader {
 public:
  explicit CacheReader(std::shared_ptr<const RowReader> before) : before_(std::move(before)), kept_(before_->rows()) {}

  size_t rows() const override { return before_->rows(); }
  int threads() const override { return before_->threads(); }
  absl::Status Read(size_t row, Example& into) const override {
    if (const std::shared_ptr<const Example> kept = Kept(row)) {
      into = *kept;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(before_->Read(row, into));
    auto read = std::make_shared<const Example>(into);
    MutexLock lock(mutex_);
    kept_[row] = std::move(read);
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<const Example> Kept(size_t row) const {
    MutexLock lock(mutex_);
    return kept_[row];
  }

  const std::shared_ptr<const RowReader> before_;
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const Example>> kept_ ABSL_GUARDED_BY(mutex_);
};

class CacheStage final : public IndexedStageAfter {
 public:
  using IndexedStageAfter::IndexedStageAfter;

  std::string Name() const override { return "cache"; }
  absl::Status Check() const override {
    if (before()->endless())
      return WrongOptionError("an endless input would need endless memory; accepted: before repeat");
    return CheckNotShared();
  }
  absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const override {
    MutexLock lock(mutex_);
    if (!reader_) {
      ASSIGN_OR_RETURN(std::shared_ptr<const RowReader> rows, before()->OpenReader());
      reader_ = std::make_shared<CacheReader>(std::move(rows));
    }
    return reader_;
  }
  void FillOrder(int64_t, size_t rows, std::vector<size_t>& order) const override {
    before()->FillOrder(0, rows, order);  // as in CacheStream
  }

 protected:
  std::unique_ptr<StageStream> MakeStreamOver(std::unique_ptr<StageStream> elements) const override {
    return std::make_unique<CacheStream>(std::move(elements), memory_);
  }

 private:
  mutable CacheMemory memory_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const RowReader> reader_ ABSL_GUARDED_BY(mutex_);  // null at first
};

}  // namespace

StagePtr MakeCacheStage(StagePtr before) { return std::make_shared<CacheStage>(std::move(before)); }

}  // namespace muster
