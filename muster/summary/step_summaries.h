// The summaries of one step: what the program registers while its loss is computed, until whoever writes summaries
// takes them. A session has one of these; `muster::summary::Scalar` and the like (torch_bridge/summaries.h) find the
// one of the step that is under way, so that a program's loss needs no object to report to, as in TensorFlow.
//
// How they find it is the one variable of muster that is neither a member nor a local: a pointer for each thread, set
// by Scope for the length of a step. It is none of the globals that the project does without: nothing outlives the
// step, two sessions on two threads don't see each other, and of two on one thread the inner one is met while its step
// runs.
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

// An encoded `Summary` message, made anew each time that it is asked for.
using SummaryOp = std::function<std::string()>;

class StepSummaries {
 public:
  // A step: what was registered in the one before is gone, and Current() is `summaries` on this thread until the end of
  // the scope. `wanted`: somebody will write this step's summaries.
  class Scope {
   public:
    Scope(StepSummaries& summaries, bool wanted);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepSummaries* const outer_;
  };

  // FailedPrecondition: no step is under way on this thread. `what` was called, for the error's text.
  static absl::StatusOr<StepSummaries*> Current(std::string_view what);

  // What costs time to make (histograms, images, text, graphs) is registered only if this is true; what is added all
  // the same is kept all the same.
  bool wanted() const { return wanted_; }

  // Kept in every step, wanted or not: hooks may look at any. Of two with one tag, here and below, the later counts.
  void AddScalar(std::string_view tag, double value);
  // InvalidArgument, in TensorFlow's words: a value that isn't finite.
  [[nodiscard]] absl::Status AddHistogram(std::string_view tag, std::span<const float> values);
  // InvalidArgument: see EncodePng.
  [[nodiscard]] absl::Status AddImage(std::string_view tag, const ImageView& image);
  void AddText(std::string_view tag, std::string_view text);
  // These two belong to the run: they stay for later steps, and are written once.
  void SetHParams(std::span<const HParam> hparams, std::span<const std::string> metrics);
  void SetGraph(std::span<const GraphNode> nodes);

  const std::vector<std::pair<std::string, double>>& scalars() const { return scalars_; }
  // Everything of this step but the scalars, as an encoded `Summary`.
  std::string EncodedOthers() const;
  // Everything of this step as one encoded `Summary`: scalars first, each kind in the order of registration.
  std::string MergeAll() const;
  // Encoded: a `Summary` and a `GraphDef`. Empty if none was registered yet.
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
