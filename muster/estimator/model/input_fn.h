// Where batches come from: a function that makes a Dataset for this process. TensorFlow's input_fn. Not thread-safe.
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
  // TensorFlow's InputContext: of all workers that train this is which. 1 and 0 for evaluation and prediction.
  size_t num_input_pipelines = 1;
  size_t input_pipeline_id = 0;
  // Shares an epoch among all workers by a queue (Dataset::ShareBy); null where there is only this process's own
  // reading to do, which then reads everything. See docs/input.md. Called once at most: an input function has one epoch
  // to share.
  std::function<std::shared_ptr<WorkSource>(int64_t rows, int64_t rows_per_unit, int64_t epochs)> share;
};

// May throw Error. The elements of the Dataset are batches.
using InputFn = std::function<Dataset(const InputContext&)>;

// The batches of an input function, as tensors over the pipeline's own memory, which is used again once a batch's
// tensors are gone. Throws Error.
class InputReader {
 public:
  // Calls the function and opens its Dataset. `what` names it in messages: "the training input function".
  InputReader(const InputFn& input_fn, const InputContext& context, std::string what);
  ~InputReader();
  InputReader(const InputReader&) = delete;
  InputReader& operator=(const InputReader&) = delete;

  // False: the data have ended. Where a restored position is the end of the data, they are read anew from the
  // beginning: who trains again by the same function wants them once more. Throws Error: InvalidArgument if there
  // wasn't a single batch ("yielded nothing"; not where work is shared: the others may have done it all), if an element
  // is no batch (its features and labels don't have the same number of rows); the pipeline's own errors.
  bool Next(Minibatch& into);
  // The step of what was handed out last is over: see ExampleStream::StepOver. Throws Error: that of the queue by which
  // work is shared.
  void StepOver();
  // Work is shared with others: a session that begins anew has lost what it had in hand.
  bool shares() const;
  // Its position, for the session's saveables. The reader must outlive them.
  Saveable Position();

 private:
  class SpareExamples;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster
