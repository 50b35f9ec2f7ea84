// One pass of a reader through a Dataset: where a training loop draws its batches from. A position can be saved between
// any two elements and restored before the first. Used by one thread; stages behind it may have threads of their own
// (parallel Map, Prefetch), which begin with the first Next and end with Stop or the destructor.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/example.h"

namespace muster {

class ExampleStream {
 public:
  virtual ~ExampleStream() = default;

  // Fills `into`, reusing its memory: keep handing in the same one (or ones) and nothing is allocated. False: the data
  // have ended, `into` is as it was. Blocks for as long as the source and the functions of Map take. Errors: those of
  // the sources (NotFound, InvalidArgument and DataLoss naming file and line) and functions, which stay; Aborted where
  // work is shared (WorkSource::Take), after which it may be called again; Cancelled: stopped.
  virtual absl::StatusOr<bool> Next(Example& into) = 0;

  // Text for a checkpoint: how many elements Next has handed out (those that stages made ready ahead of it don't
  // count), what that means in epochs, and what the order depends on. docs/input.md has the format.
  virtual std::string SavePosition() const = 0;

  // Goes on behind the last element handed out before SavePosition: the elements are those that would have come. A
  // stream of another pipeline (other data, seed, sharding, batch size) can't: it begins the saved epoch anew, with a
  // warning; as does one whose data have fewer elements now. FailedPrecondition after the first Next. InvalidArgument:
  // not what SavePosition gave.
  [[nodiscard]] virtual absl::Status RestorePosition(const std::string& saved) = 0;

  // The steps that what was handed out is for are over, whether their updates are counted already or wait in a window:
  // where work is shared (Dataset::ShareBy), its source is told. Called after every step, between two Nexts. Errors:
  // those of WorkSource::Done; the next call tells it again.
  [[nodiscard]] virtual absl::Status StepOver() { return absl::OkStatus(); }

  // Ends threads; a Next that waits, and every later one, is Cancelled. From any thread, as often as one likes.
  virtual void Stop() = 0;
};

}  // namespace muster
