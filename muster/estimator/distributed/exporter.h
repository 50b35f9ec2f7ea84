// What happens to a model that was evaluated: it is exported, always, when it is the best so far, or at the end.
// TensorFlow's LatestExporter, BestExporter and FinalExporter (exporter.py). Used by the thread that evaluates.
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
  // After an evaluation of `checkpoint_path`; `is_final`: the last of the training. A checkpoint that turns out to be
  // the last when it was evaluated before comes a second time, with `is_final`. The path of the export, or empty.
  // Throws Error.
  virtual std::string Export(Estimator& estimator, const std::string& export_path, const std::string& checkpoint_path,
                             const EvalResults& results, bool is_final) = 0;
};

// All three throw Error (InvalidArgument, exit code 2) for a name that is no folder's, no inputs, a negative number to
// keep.

// Every evaluated checkpoint, once.
struct LatestExporterOptions {
  std::string name = "latest";
  ExportInputs inputs;
  int exports_to_keep = 5;  // the newest; 0: all
};
std::shared_ptr<Exporter> LatestExporter(LatestExporterOptions options);

// The first, and what is better than all before it.
struct BestExporterOptions {
  std::string name = "best_exporter";
  ExportInputs inputs;
  // Whether `now` is better than `best`, the results of the best so far (at first there is none: not asked). Empty: a
  // lower "loss". What was best is known after a restart from best.json beside the exports: {"checkpoint": its path,
  // "results": {…}}.
  std::function<bool(const EvalResults& best, const EvalResults& now)> compare;
  int exports_to_keep = 5;
};
std::shared_ptr<Exporter> BestExporter(BestExporterOptions options);

// The last checkpoint of the training.
struct FinalExporterOptions {
  std::string name = "final";
  ExportInputs inputs;
};
std::shared_ptr<Exporter> FinalExporter(FinalExporterOptions options);

}  // namespace muster
