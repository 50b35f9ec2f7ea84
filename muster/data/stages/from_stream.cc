#include <utility>

#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

class FromStreamStream final : public SequentialStream {
 public:
  explicit FromStreamStream(const OpenStreamFunction& open) : open_(open) {}

  void Stop() override {
    std::shared_ptr<ExampleStream> stream;
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      stream = stream_;
    }
    if (stream) stream->Stop();
  }

 protected:
  absl::Status Rewind(int64_t) override {
    ASSIGN_OR_RETURN(std::shared_ptr<ExampleStream> opened, open_());
    if (opened == nullptr) return absl::InvalidArgumentError("from_stream: the function opened a null pointer");
    MutexLock lock(mutex_);
    if (stopped_) return absl::CancelledError("the input has been stopped");
    stream_ = std::move(opened);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Read(Example& into) override {
    std::shared_ptr<ExampleStream> stream;
    {
      MutexLock lock(mutex_);
      stream = stream_;
    }
    return stream->Next(into);
  }

 private:
  const OpenStreamFunction& open_;  // owned by the stage
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<ExampleStream> stream_ ABSL_GUARDED_BY(mutex_);  // replaced by each Rewind
};

class FromStreamStage final : public DatasetStage {
 public:
  FromStreamStage(std::string description, OpenStreamFunction open)
      : description_(std::move(description)), open_(std::move(open)) {}

  std::string Name() const override { return description_; }
  absl::Status Check() const override {
    return open_ ? absl::OkStatus() : WrongOptionError("no function that opens a stream");
  }
  absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const override {
    return std::make_unique<FromStreamStream>(open_);
  }

 private:
  const std::string description_;
  const OpenStreamFunction open_;
};

}  // namespace

StagePtr MakeFromStreamStage(std::string description, OpenStreamFunction open) {
  return std::make_shared<FromStreamStage>(std::move(description), std::move(open));
}

}  // namespace muster
