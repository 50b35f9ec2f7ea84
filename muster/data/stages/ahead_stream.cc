#include "muster/data/stages/ahead_stream.h"

#include <exception>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// An exception from a source of the program (FromStream, WorkSource) would end the process if it left a thread of ours.
template <typename Call>
std::invoke_result_t<Call> WithoutThrowing(Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while input was made ready");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the input threw: ", error.what()));
  }
}

class AheadStream final : public StageStream {
 public:
  AheadStream(std::unique_ptr<StageStream> source, const AheadOptions& options)
      : options_(options), source_(std::move(source)), slots_(options.depth), ready_(options.depth) {}
  ~AheadStream() override { Stop(); }

  absl::Status Begin(int64_t epoch) override;
  absl::StatusOr<bool> Next(Example& into) override;
  void Tell(Place& place) const override { place.Append(place_); }
  absl::Status Seek(PlaceReader& place) override { return Moved(source_->Seek(place)); }
  absl::Status SeekEpoch(int64_t epoch) override { return Moved(source_->SeekEpoch(epoch)); }
  void Stop() override;

 private:
  struct Slot {
    Example example;
    size_t row = 0;
    Place place;  // after this element
    absl::StatusOr<bool> got = false;
  };

  void StartThreads();
  void EndThreads();
  void Run();
  // Waits and returns the number of the element that this thread draws next; -1: there is nothing more to do.
  int64_t AwaitTurn();
  // Draws element `number`; true: it must still be made.
  bool DrawInto(int64_t number);
  Slot& SlotOf(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  // Takes the source's current place as this stream's.
  absl::Status Moved(absl::Status status) {
    place_.Clear();
    if (status.ok()) source_->Tell(place_);
    return status;
  }

  // Constant after construction.
  const AheadOptions options_;
  const std::unique_ptr<StageStream> source_;  // used only by the thread that draws, once there are threads
  // A slot is used by the thread that draws or makes its element; once the element is ready, by the thread that calls
  // Next, until it is handed out.
  std::vector<Slot> slots_;

  // Used only by the thread that calls Next.
  Place place_;  // after the last element handed out
  bool started_ = false;

  Mutex threads_mutex_;  // locked before mutex_
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(threads_mutex_);

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // for good
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;   // threads must end
  bool drawing_ ABSL_GUARDED_BY(mutex_) = false;  // a thread is in source_->Draw
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;    // the source has ended or failed
  int64_t drawn_ ABSL_GUARDED_BY(mutex_) = 0;     // number of elements drawn, and the end
  int64_t handed_out_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<bool> ready_ ABSL_GUARDED_BY(mutex_);  // by slot
};

absl::Status AheadStream::Begin(int64_t epoch) {
  EndThreads();
  started_ = false;
  {
    MutexLock lock(mutex_);
    if (stopped_) return absl::CancelledError("the input has been stopped");
    ending_ = drawing_ = ended_ = false;
    drawn_ = handed_out_ = 0;
    ready_.assign(ready_.size(), false);
  }
  return Moved(source_->Begin(epoch));
}

absl::StatusOr<bool> AheadStream::Next(Example& into) {
  if (!std::exchange(started_, true)) StartThreads();
  MutexLock lock(mutex_);
  const size_t next = static_cast<size_t>(handed_out_) % slots_.size();
  while (!stopped_ && !ready_[next]) changed_.Wait(mutex_);
  if (stopped_) return absl::CancelledError("the input has been stopped");
  Slot& slot = slots_[next];
  if (!slot.got.ok() || !*slot.got) return slot.got;
  std::swap(into, slot.example);
  std::swap(place_, slot.place);
  ready_[next] = false;
  ++handed_out_;
  changed_.NotifyAll();
  return true;
}

void AheadStream::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  source_->Stop();
  EndThreads();
}

void AheadStream::StartThreads() {
  MutexLock threads_lock(threads_mutex_);
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
  }
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Run(); });
}

void AheadStream::EndThreads() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  MutexLock threads_lock(threads_mutex_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void AheadStream::Run() {
  for (;;) {
    const int64_t number = AwaitTurn();
    if (number < 0) return;
    if (DrawInto(number)) {
      Slot& slot = SlotOf(number);
      absl::Status made = WithoutThrowing([&] { return source_->Make(slot.example, slot.row); });
      if (!made.ok()) slot.got = std::move(made);
    }
    MutexLock lock(mutex_);
    ready_[static_cast<size_t>(number) % slots_.size()] = true;
    changed_.NotifyAll();
  }
}

int64_t AheadStream::AwaitTurn() {
  MutexLock lock(mutex_);
  const auto depth = static_cast<int64_t>(slots_.size());
  while (!stopped_ && !ending_ && !ended_ && (drawing_ || drawn_ - handed_out_ >= depth)) changed_.Wait(mutex_);
  if (stopped_ || ending_ || ended_) return -1;
  drawing_ = true;
  return drawn_;
}

bool AheadStream::DrawInto(int64_t number) {
  Slot& slot = SlotOf(number);
  slot.got = WithoutThrowing([&] { return source_->Draw(slot.example, slot.row); });
  const bool got = slot.got.ok() && *slot.got;
  slot.place.Clear();
  if (got) source_->Tell(slot.place);
  MutexLock lock(mutex_);
  drawing_ = false;
  ++drawn_;
  ended_ = !got;
  changed_.NotifyAll();
  return got;
}

}  // namespace

std::unique_ptr<StageStream> MakeAheadStream(std::unique_ptr<StageStream> source, const AheadOptions& options) {
  return std::make_unique<AheadStream>(std::move(source), options);
}

}  // namespace muster
