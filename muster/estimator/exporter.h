// What happens to a model that was evaluated: it is exported, always, when it is the best so far, or at the end.
// TensorFlow's LatestExporter, BestExporter and FinalExporter. Used by the thread that evaluates.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "muster/estimator/estimator.h"

namespace muster {

class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual const std::string& name() const = 0;  // exports go to model_dir/export/NAME
  // After an evaluation of `checkpoint_path`; `is_final`: the last of the training. The path of the export, or empty.
  // Throws Error.
  virtual std::string Export(Estimator& estimator, const std::string& export_path, const std::string& checkpoint_path,
                             const EvalResults& results, bool is_final) = 0;
};

struct LatestExporterOptions {
  std::string name = "latest";
  ExportInputs inputs;
  int exports_to_keep = 5;  // 0: all
};
std::shared_ptr<Exporter> LatestExporter(LatestExporterOptions options);

struct BestExporterOptions {
  std::string name = "best_exporter";
  ExportInputs inputs;
  // Whether `now` is better than `best`, the results of the best so far (empty at first: not asked). Default: a lower
  // "loss". What was best is known from the exports' folder after a restart.
  std::function<bool(const EvalResults& best, const EvalResults& now)> compare;
  int exports_to_keep = 5;
};
std::shared_ptr<Exporter> BestExporter(BestExporterOptions options);

struct FinalExporterOptions {
  std::string name = "final";
  ExportInputs inputs;
};
std::shared_ptr<Exporter> FinalExporter(FinalExporterOptions options);

}  // namespace muster
