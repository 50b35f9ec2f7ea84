// Makes batches ready in a thread of its own while the trainer computes, in a bounded queue: a full queue stops the
// thread, so memory stays at `depth` batches. Start and Stop are explicit; between them one consumer calls Next.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/mutex.h"
#include "muster/data/batch.h"

namespace muster {

struct PrefetcherOptions {
  // Batches held ready; at least 1.
  size_t depth = 4;
};

// Thread-safe, except that Start and Stop are called by one thread. Stopped before destroyed.
class Prefetcher final : public BatchSource {
 public:
  explicit Prefetcher(std::unique_ptr<BatchSource> source, const PrefetcherOptions& options = {});
  ~Prefetcher() override;

  // Starts the thread. Once.
  void Start();
  // Ends the thread, which first finishes the batch it is at; a Next that waits returns Cancelled. May be called twice.
  void Stop();

  // Blocks until a batch is there, the data have ended (false) or the source failed (its error, after the batches made
  // before it, and again on each further call). Swaps memory with `into`: keep handing in the same batch and nothing is
  // allocated. Cancelled once stopped, FailedPrecondition before Start. The wait is as long as the source takes for a
  // batch.
  absl::StatusOr<bool> Next(Batch& into) override;

 private:
  enum class State { kNew, kRunning, kEnded, kStopped };

  void Run();

  // Constant after construction.
  const size_t depth_;
  const std::unique_ptr<BatchSource> source_;  // used by the thread alone once it runs

  std::thread thread_;  // used by the caller of Start and Stop alone

  Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNew;
  std::deque<Batch> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<Batch> spare_ ABSL_GUARDED_BY(mutex_);  // emptied ones, for their memory
  absl::Status error_ ABSL_GUARDED_BY(mutex_);        // why it ended, if not with the data
};

}  // namespace muster
