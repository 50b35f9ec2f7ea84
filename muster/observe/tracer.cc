#include "muster/observe/tracer.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"

namespace muster {

absl::StatusOr<std::unique_ptr<Tracer>> Tracer::Open(TracerOptions options, FileSystem& files,
                                                     const TraceClock& clock) {
  std::unique_ptr<WritableFile> file;
  if (!options.path.empty()) {
    auto opened = files.OpenForWriting(options.path);
    if (!opened.ok()) return absl::InvalidArgumentError(absl::StrCat("--trace: ", opened.status().message()));
    file = *std::move(opened);
  }
  return std::unique_ptr<Tracer>(new Tracer(std::move(options), clock, std::move(file)));
}

Tracer::Tracer(TracerOptions options, const TraceClock& clock, std::unique_ptr<WritableFile> file)
    : options_(std::move(options)), clock_(clock), pid_(getpid()), file_(std::move(file)) {
  if (file_ == nullptr) return;
  {
    MutexLock lock(mutex_);
    Write(PartHead({.task = options_.task, .pid = pid_, .host = ThisHost(), .begin = clock_.Nanos()}));
  }
  thread_ = std::thread([this] { Work(); });
}

Tracer::~Tracer() {
  if (file_ == nullptr) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  MutexLock lock(mutex_);
  FlushLocked();
  const uint64_t left_out = LeftOut();
  if (left_out > 0)
    LogWarning(options_.path, " lacks ", left_out, " events, which came faster than they could be written");
  Write(PartEnd(pid_, left_out));
  if (!failed_) file_->Close().IgnoreError();
}

Track* Tracer::AddTrack(std::string name) {
  MutexLock lock(mutex_);
  const bool keeps = file_ != nullptr || capturing_;
  Track& track = tracks_.emplace_back(std::move(name), clock_, keeps ? options_.ring_events : 0);
  std::string line;
  AppendTrackName(pid_, tracks_.size(), track.name(), line);
  if (file_ != nullptr) Write(line);
  if (capturing_) captured_ += line;
  return &track;
}

void Tracer::AddClockSample(const ClockSample& sample) {
  if (file_ == nullptr) return;
  std::string line;
  AppendClockSample(pid_, sample, line);
  MutexLock lock(mutex_);
  Write(line);
}

void Tracer::Flush() {
  MutexLock lock(mutex_);
  FlushLocked();
}

absl::StatusOr<std::shared_ptr<const void>> Tracer::ClaimCapture() {
  MutexLock lock(mutex_);
  if (!claim_.expired())
    return absl::FailedPreconditionError("this task is being captured already; only one capture can run at a time");
  auto token = std::make_shared<const char>();
  claim_ = token;
  return token;
}

void Tracer::BeginCapture() {
  MutexLock lock(mutex_);
  for (Track& track : tracks_) track.KeepEvents(options_.ring_events);
  FlushLocked();  // older events don't belong to the capture
  capturing_ = true;
  left_out_before_ = LeftOut();
  captured_ = PartHead({.task = options_.task, .pid = pid_, .host = ThisHost(), .begin = clock_.Nanos()});
  for (size_t i = 0; i < tracks_.size(); ++i) AppendTrackName(pid_, i + 1, tracks_[i].name(), captured_);
}

std::string Tracer::EndCapture() {
  MutexLock lock(mutex_);
  FlushLocked();
  capturing_ = false;
  if (file_ == nullptr)
    for (Track& track : tracks_) track.DropEvents();
  return std::exchange(captured_, {}) + PartEnd(pid_, LeftOut() - left_out_before_);
}

uint64_t Tracer::LeftOut() {
  uint64_t left_out = 0;
  for (Track& track : tracks_)
    if (track.ring() != nullptr) left_out += track.ring()->left_out();
  return left_out;
}

void Tracer::Work() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    changed_.WaitFor(mutex_, options_.flush_interval);
    FlushLocked();
  }
}

void Tracer::FlushLocked() {
  std::string text;
  for (size_t i = 0; i < tracks_.size(); ++i)
    if (EventRing* const ring = tracks_[i].ring())
      ring->Take([&](const TraceEvent& event) { AppendEvent(pid_, i + 1, event, text); });
  if (text.empty()) return;
  // The capturing caller may have gone without calling EndCapture.
  if (capturing_ && !claim_.expired()) captured_ += text;
  if (file_ != nullptr) Write(text);
}

void Tracer::Write(const std::string& text) {
  if (failed_) return;
  absl::Status written = file_->Append(AsBytes(text.data(), text.size()));
  if (written.ok()) written = file_->Flush();
  if (written.ok()) return;
  failed_ = true;
  LogWarning("the trace ends here: ", written.message());
}

}  // namespace muster
