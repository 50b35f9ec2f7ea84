// Evaluates checkpoints of one Estimator and shows the results to the exporters of an EvalSpec: what the listener of a
// local training and the loop of an evaluator have in common (TensorFlow's _TrainingExecutor._Evaluator, training.py).
// Used by one thread.
#pragma once

#include <string>

#include "muster/estimator/distributed/train_and_evaluate.h"
#include "muster/estimator/estimator.h"

namespace muster {

class CheckpointEvaluation {
 public:
  // Both must outlive it.
  CheckpointEvaluation(Estimator& estimator, const EvalSpec& spec) : estimator_(estimator), spec_(spec) {}

  // Of the checkpoint at `path`. `is_final`: nobody trains any more; is for the exporters. Throws Error.
  void Evaluate(const std::string& path, bool is_final);
  // The last one turned out to be the final one after it was evaluated: the exporters hear of it. Throws Error.
  void Finish();

  const std::string& last() const { return last_; }  // the path of the last; empty: none
  // Of the last.
  const TrainAndEvaluateResults& results() const { return results_; }

 private:
  void Export();

  Estimator& estimator_;
  const EvalSpec& spec_;
  std::string last_;
  bool is_final_ = false;
  TrainAndEvaluateResults results_;
};

}  // namespace muster
