// Where batches come from: a function that makes a Dataset for this process. TensorFlow's input_fn. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/data/dataset.h"
#include "muster/estimator/minibatch.h"
#include "muster/train/saver.h"

namespace muster {

struct InputContext {
  // TensorFlow's InputContext: of all workers that train this is which. 1 and 0 for evaluation and prediction.
  size_t num_input_pipelines = 1;
  size_t input_pipeline_id = 0;
  // Shares an epoch among all workers by a queue (Dataset::ShareBy); null where there is only this process's own
  // reading to do, which then reads everything. See docs/input.md.
  std::function<std::shared_ptr<WorkSource>(int64_t rows, int64_t rows_per_unit, int64_t epochs)> share;
};

// May throw Error. The elements of the Dataset are batches.
using InputFn = std::function<Dataset(const InputContext&)>;

// The batches of an input function, as tensors. Throws Error.
class InputReader {
 public:
  // `what` names the function in messages: "the training input function".
  InputReader(const InputFn& input_fn, const InputContext& context, std::string what);
  ~InputReader();
  InputReader(const InputReader&) = delete;
  InputReader& operator=(const InputReader&) = delete;

  // False: the data have ended. Throws Error: InvalidArgument if there wasn't a single batch ("yielded nothing").
  bool Next(Minibatch& into);
  // What was handed out last is part of the model: where work is shared by a queue, it is told.
  void Committed();
  // Its position, for the session's saveables.
  Saveable Position();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster
