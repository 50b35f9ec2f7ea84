// The source of batches: a function that makes a Dataset for this process. TensorFlow's input_fn. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "muster/data/dataset/dataset.h"
#include "muster/estimator/model/minibatch.h"
#include "muster/train/saving/saver.h"

namespace muster {

struct InputContext {
  // TensorFlow's InputContext: the number of training workers, and this one's index. 1 and 0 in evaluation and
  // prediction.
  size_t num_input_pipelines = 1;
  size_t input_pipeline_id = 0;
  // Shares an epoch among all workers by a queue (Dataset::ShareBy). Null if this process reads alone, and then reads
  // everything. See docs/input.md. Call it at most once: an input function has one epoch to share.
  std::function<std::shared_ptr<WorkSource>(int64_t rows, int64_t rows_per_unit, int64_t epochs)> share;
};

// May throw Error. The elements of the Dataset are batches.
using InputFn = std::function<Dataset(const InputContext&)>;

// The batches of an input function, as tensors over the pipeline's own memory, which is reused once a batch's tensors
// are gone. Throws Error.
class InputReader {
 public:
  // Calls the function and opens its Dataset. `what` names it in messages: "the training input function".
  InputReader(const InputFn& input_fn, const InputContext& context, std::string what);
  ~InputReader();
  InputReader(const InputReader&) = delete;
  InputReader& operator=(const InputReader&) = delete;

  // Reads the next batch; returns false at the end of the data. If the restored position is the end of the data, they
  // are read again from the beginning: a program that trains again by the same function wants them once more. Throws
  // Error: InvalidArgument if there wasn't a single batch ("yielded nothing"; not if work is shared: the others may
  // have done it all), or if an element isn't a batch (its features and labels don't have the same number of rows); the
  // pipeline's own errors.
  bool Next(Minibatch& into);
  // Tells the pipeline that the step of the last batch is over: see ExampleStream::StepOver. Throws Error: that of the
  // queue that shares the work.
  void StepOver();
  // True if work is shared with others: then a session that joins again has lost the units it had.
  bool shares() const;
  // Its position, for the session's saveables. The reader must outlive them.
  Saveable Position();

 private:
  class SpareExamples;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster
