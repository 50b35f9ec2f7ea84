// The summaries of one step: the program registers them while its loss is computed, until the code that writes
// summaries takes them. A session has one of these. `muster::summary::Scalar` and the like
// (torch_bridge/facade/summaries.h) find that of the present step, so that a program's loss needs no object to report
// to, as in TensorFlow.
//
// They find it through muster's only variable that is neither a member nor a local: a pointer for each thread, set by
// Scope for the duration of a step. It isn't one of the globals that the project avoids: nothing outlives the step, two
// sessions on two threads don't see each other, and with two on one thread the inner one is found while its step runs.
//
// Used by the thread that runs the step.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/summary/graph_def.h"
#include "muster/summary/hparams.h"
#include "muster/summary/png.h"

namespace muster {

// Returns an encoded `Summary` message, encoded again at each call.
using SummaryOp = std::function<std::string()>;

class StepSummaries {
 public:
  // One step: discards what the previous step registered, and makes `summaries` this thread's Current() until the end
  // of the scope. `wanted`: this step's summaries will be written.
  class Scope {
   public:
    Scope(StepSummaries& summaries, bool wanted);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepSummaries* const outer_;
  };

  // FailedPrecondition: no step is running on this thread. `what` names the called function in the error.
  static absl::StatusOr<StepSummaries*> Current(std::string_view what);

  // If false, expensive summaries (histograms, images, text, graphs) need not be registered. Those that are registered
  // anyway are kept anyway.
  bool wanted() const { return wanted_; }

  // Kept in every step, wanted or not: hooks may read any of them. If a tag is registered twice, here and below, the
  // later value counts.
  void AddScalar(std::string_view tag, double value);
  // InvalidArgument, in TensorFlow's words: a value isn't finite.
  [[nodiscard]] absl::Status AddHistogram(std::string_view tag, std::span<const float> values);
  // InvalidArgument: see EncodePng.
  [[nodiscard]] absl::Status AddImage(std::string_view tag, const ImageView& image);
  void AddText(std::string_view tag, std::string_view text);
  // These two belong to the run: they are kept for later steps, and written once.
  void SetHParams(std::span<const HParam> hparams, std::span<const std::string> metrics);
  void SetGraph(std::span<const GraphNode> nodes);

  const std::vector<std::pair<std::string, double>>& scalars() const { return scalars_; }
  // Returns everything of this step except the scalars, as an encoded `Summary`.
  std::string EncodedOthers() const;
  // Returns everything of this step as one encoded `Summary`: scalars first, each kind in the order of registration.
  std::string MergeAll() const;
  // Return an encoded `Summary` and an encoded `GraphDef`. Empty if none was registered yet.
  const std::string& hparams() const { return hparams_; }
  const std::string& graph() const { return graph_; }

 private:
  void Keep(std::string_view tag, std::string encoded);

  bool wanted_ = false;
  std::vector<std::pair<std::string, double>> scalars_;
  std::vector<std::pair<std::string, std::string>> others_;  // tag, Summary with this one value
  std::string hparams_;
  std::string graph_;
};

}  // namespace muster
