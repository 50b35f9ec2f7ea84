// What a training loop draws its minibatches from: a Batcher, made ready ahead of time by a thread, whose position can
// be saved between any two batches and restored before the first. It keeps what is easily got wrong: the position to
// save is that of the last batch handed out, not of the last one made ready, and right after a restore it is the
// restored one (a session saves when it starts).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/data/batcher.h"
#include "muster/data/prefetcher.h"

namespace muster {

struct InputStreamOptions {
  BatcherOptions batches;
  // Batches made ready by a thread of its own, which starts at the first Next; 0: none, each is made when asked for.
  size_t prefetch = 4;
};

// Used by one thread. Stopped before destroyed if it prefetches.
class InputStream final : public BatchSource {
 public:
  // Borrows `data`, which must outlive it. Errors: those of Batcher::Create.
  static absl::StatusOr<std::unique_ptr<InputStream>> Create(const LabelledRows& data,
                                                             const InputStreamOptions& options);

  // Errors: those of Prefetcher::Next.
  absl::StatusOr<bool> Next(Batch& into) override;

  // Ends the thread. May be called twice, or without a Next before it.
  void Stop();

  // Text for a checkpoint: where to go on, and what the order of the rows depends on.
  std::string SavePosition() const;

  // Goes on behind the last batch handed out before SavePosition: the batches are those that would have come. A stream
  // of another data set, seed or sharding (a cluster with another number of workers) can't: it begins the saved epoch
  // anew, with a warning. FailedPrecondition after the first Next. InvalidArgument: not what SavePosition gave.
  [[nodiscard]] absl::Status RestorePosition(const std::string& saved);

  DataPosition position() const { return position_; }

 private:
  InputStream(const LabelledRows& data, const InputStreamOptions& options, Batcher batcher);

  const size_t rows_;  // of the data set
  const InputStreamOptions options_;
  std::unique_ptr<Batcher> batcher_;        // null once the prefetcher has it
  std::unique_ptr<Prefetcher> prefetcher_;  // from the first Next on, if any
  DataPosition position_;
  bool begun_ = false;
};

}  // namespace muster
