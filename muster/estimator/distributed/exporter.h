// Exports a model after an evaluation: always, when it is the best so far, or at the end of training. TensorFlow's
// LatestExporter, BestExporter and FinalExporter (exporter.py). Used by the thread that evaluates.
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
  // Called after an evaluation of `checkpoint_path`; `is_final`: the last of the training. If a checkpoint turns out to
  // be the last only after its evaluation, it comes a second time, with `is_final`. Returns the path of the export, or
  // empty. Throws Error.
  virtual std::string Export(Estimator& estimator, const std::string& export_path, const std::string& checkpoint_path,
                             const EvalResults& results, bool is_final) = 0;
};

// All three throw Error (InvalidArgument, exit code 2) for a name that can't be a folder's, no inputs, or a negative
// number to keep.

// Exports every evaluated checkpoint, once.
struct LatestExporterOptions {
  std::string name = "latest";
  ExportInputs inputs;
  int exports_to_keep = 5;  // the newest; 0: all
};
std::shared_ptr<Exporter> LatestExporter(LatestExporterOptions options);

// Exports the first, and each that is better than all before it.
struct BestExporterOptions {
  std::string name = "best_exporter";
  ExportInputs inputs;
  // Whether `now` is better than `best`, the best results so far (not called for the first ones). Empty: a lower
  // "loss". After a restart the best results are read from best.json beside the exports: {"checkpoint": its path,
  // "results": {…}}.
  std::function<bool(const EvalResults& best, const EvalResults& now)> compare;
  int exports_to_keep = 5;
};
std::shared_ptr<Exporter> BestExporter(BestExporterOptions options);

// Exports the last checkpoint of the training.
struct FinalExporterOptions {
  std::string name = "final";
  ExportInputs inputs;
};
std::shared_ptr<Exporter> FinalExporter(FinalExporterOptions options);

}  // namespace muster
