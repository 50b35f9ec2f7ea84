#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/ahead_stream.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

// Calls the function and adds the example's number to its error. Catches exceptions: the function may run in a thread
// of ours, where an exception would end the process.
absl::Status CallMapFunction(const MapFunction& function, size_t number, Example& example) {
  absl::Status said;
  try {
    said = function(example);
  } catch (const std::exception& error) {
    said = absl::InternalError(absl::StrCat("the function threw: ", error.what()));
  }
  if (said.ok()) return said;
  absl::Status named(said.code(), absl::StrCat("map: example ", number, ": ", said.message()));
  said.ForEachPayload([&named](absl::string_view type, const absl::Cord& payload) { named.SetPayload(type, payload); });
  return named;
}

class MapReader final : public RowReader {
 public:
  MapReader(std::shared_ptr<const RowReader> before, MapFunction function, int threads)
      : before_(std::move(before)), function_(std::move(function)), threads_(std::max(threads, before_->threads())) {}

  size_t rows() const override { return before_->rows(); }
  int threads() const override { return threads_; }
  absl::Status Read(size_t row, Example& into) const override {
    RETURN_IF_ERROR(before_->Read(row, into));
    return CallMapFunction(function_, row, into);
  }

 private:
  const std::shared_ptr<const RowReader> before_;
  const MapFunction function_;
  const int threads_;
};

class MapStream final : public StreamAfter {
 public:
  MapStream(std::unique_ptr<StageStream> before, MapFunction function)
      : StreamAfter(std::move(before)), function_(std::move(function)) {}

  absl::Status Begin(int64_t epoch) override {
    drawn_ = 0;
    return before().Begin(epoch);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    size_t number = 0;
    ASSIGN_OR_RETURN(const bool got, Draw(into, number));
    if (got) RETURN_IF_ERROR(Make(into, number));
    return got;
  }
  absl::StatusOr<bool> Draw(Example& into, size_t& number) override {
    ASSIGN_OR_RETURN(const bool got, before().Next(into));
    if (got) number = drawn_++;
    return got;
  }
  absl::Status Make(Example& into, size_t number) override { return CallMapFunction(function_, number, into); }

 private:
  const MapFunction function_;
  size_t drawn_ = 0;  // since Begin, or the restored position
};

class MapStage final : public IndexedStageAfter {
 public:
  MapStage(StagePtr before, MapFunction function, MapOptions options)
      : IndexedStageAfter(std::move(before)), function_(std::move(function)), options_(options) {}

  std::string Name() const override { return "map"; }
  absl::Status Check() const override {
    if (!function_) return WrongOptionError("no function");
    if (options_.threads >= 1) return absl::OkStatus();
    return WrongOptionError(absl::StrCat(options_.threads, " threads; accepted: 1 or more"));
  }
  absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const override {
    ASSIGN_OR_RETURN(std::shared_ptr<const RowReader> rows, before()->OpenReader());
    return std::make_shared<MapReader>(std::move(rows), function_, options_.threads);
  }

 protected:
  std::unique_ptr<StageStream> MakeStreamOver(std::unique_ptr<StageStream> elements) const override {
    auto mapped = std::make_unique<MapStream>(std::move(elements), function_);
    if (options_.threads == 1) return mapped;
    return MakeAheadStream(std::move(mapped), AheadOptions::ForThreads(options_.threads));
  }

 private:
  const MapFunction function_;
  const MapOptions options_;
};

}  // namespace

StagePtr MakeMapStage(StagePtr before, MapFunction function, MapOptions options) {
  return std::make_shared<MapStage>(std::move(before), std::move(function), options);
}

}  // namespace muster
