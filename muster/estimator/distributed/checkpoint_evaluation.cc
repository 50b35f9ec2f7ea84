#include "muster/estimator/distributed/checkpoint_evaluation.h"

#include <memory>
#include <utility>

#include "muster/base/files/file_system.h"

namespace muster {

void CheckpointEvaluation::Evaluate(const std::string& path, bool is_final) {
  EvalResults eval = estimator_.Evaluate(
      spec_.input_fn, {.steps = spec_.steps, .hooks = spec_.hooks, .checkpoint_path = path, .name = spec_.name});
  results_ = {.eval = std::move(eval), .exports = {}};
  last_ = path;
  is_final_ = is_final;
  Export();
}

void CheckpointEvaluation::Finish() {
  if (last_.empty() || is_final_) return;
  is_final_ = true;
  Export();
}

void CheckpointEvaluation::Export() {
  const std::string exports = JoinPath(estimator_.model_dir(), "export");
  for (const std::shared_ptr<Exporter>& exporter : spec_.exporters) {
    std::string exported =
        exporter->Export(estimator_, JoinPath(exports, exporter->name()), last_, results_.eval, is_final_);
    if (!exported.empty()) results_.exports.push_back(std::move(exported));
  }
}

}  // namespace muster
