// One pass of a reader through a Dataset, from which a training loop draws its batches. A position can be saved between
// any two elements and restored before the first. Used by one thread; stages behind it may have threads of their own
// (parallel Map, Prefetch), which begin with the first Next and end with Stop or the destructor.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/example.h"

namespace muster {

class ExampleStream {
 public:
  virtual ~ExampleStream() = default;

  // Fills `into`, reusing its memory: always pass the same one (or ones), and nothing is allocated. False: the data
  // have ended and `into` is unchanged. Blocks for as long as the source and the functions of Map take. Errors: those
  // of the sources (NotFound, InvalidArgument and DataLoss, naming file and line) and functions, which every later call
  // returns, too; Aborted with shared work (WorkSource::Take), after which it may be called again; Cancelled: stopped.
  virtual absl::StatusOr<bool> Next(Example& into) = 0;

  // Returns text for a checkpoint: how many elements Next has handed out (not counting those that stages have prepared
  // ahead of it), what that means in epochs, and what the order depends on. docs/input.md has the format.
  virtual std::string SavePosition() const = 0;

  // Goes on after the last element handed out before SavePosition, with the elements that would have come. A stream of
  // another pipeline (other data, seed, sharding, batch size) or with fewer elements can't: it begins the saved epoch
  // anew, with a warning. FailedPrecondition after the first Next. InvalidArgument: not a result of SavePosition.
  [[nodiscard]] virtual absl::Status RestorePosition(const std::string& saved) = 0;

  // Says that the steps on all elements handed out are over, whether their updates are already counted or wait in a
  // window: shared work (Dataset::ShareBy) is told so. Called after every step, between two Nexts. Errors: those of
  // WorkSource::Done; the next call tells it again.
  [[nodiscard]] virtual absl::Status StepOver() { return absl::OkStatus(); }

  // Ends threads; a Next that waits, and every later one, returns Cancelled. From any thread, any number of times.
  virtual void Stop() = 0;
};

}  // namespace muster
