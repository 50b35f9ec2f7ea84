// Evaluates checkpoints of one Estimator and passes the results to the exporters of an EvalSpec. Shared by the listener
// of a local training and the loop of an evaluator (TensorFlow's _TrainingExecutor._Evaluator, training.py). Used by
// one thread.
#pragma once

#include <string>

#include "muster/estimator/distributed/train_and_evaluate.h"
#include "muster/estimator/estimator.h"

namespace muster {

class CheckpointEvaluation {
 public:
  // Both must outlive it.
  CheckpointEvaluation(Estimator& estimator, const EvalSpec& spec) : estimator_(estimator), spec_(spec) {}

  // Evaluates the checkpoint at `path`. `is_final`, for the exporters: training has ended. Throws Error.
  void Evaluate(const std::string& path, bool is_final);
  // The last checkpoint turned out to be the final one after it was evaluated: tells the exporters. Throws Error.
  void Finish();

  const std::string& last() const { return last_; }  // the path of the last one evaluated; empty: none
  // Results of the last one.
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
