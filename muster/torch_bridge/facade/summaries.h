// Lets a training program register values for TensorBoard while it computes its loss: `muster::summary::Scalar("loss",
// loss)`, and the session's SummarySaver writes it when it is due. As tf.summary of TensorFlow 1, but a step is code
// that runs, so these are calls in it, not parts of a graph. For users: docs/summaries.md.
//
// Call them in the function that session.Run is given, on its thread; anywhere else they throw. Scalars are kept in
// every step (LoggingTensor and other hooks read them); all others return at once in a step whose summaries won't be
// written. If one tag gets two values in one step, the later one counts. All throw muster::Error.
#pragma once

#include <torch/torch.h>

#include <string>
#include <string_view>
#include <vector>

#include "muster/summary/hparams.h"

namespace muster::summary {

// `value`: one element of any type. Blocks until a device has computed it.
void Scalar(std::string_view tag, const torch::Tensor& value);
void Scalar(std::string_view tag, double value);

// Counts the elements in TensorFlow's buckets. Error, as in TensorFlow: an element that isn't finite.
void Histogram(std::string_view tag, const torch::Tensor& values);

enum class ImageLayout { kNHWC, kNCHW };

// The first `max_outputs` of a batch, as "tag/image/0", "tag/image/1", …; "tag/image" if max_outputs is 1. uint8, or
// floating-point numbers from 0 to 1 (others are clipped, NaN is 0). 1 channel is grey, 2 grey and alpha, 3 RGB, 4
// RGBA. The layout must be given, because it can't be guessed ([3, 3, 3, 3] is either).
void Image(std::string_view tag, const torch::Tensor& images, ImageLayout layout, int max_outputs = 3);

// Markdown.
void Text(std::string_view tag, std::string_view text);

// A row of the HParams tab: the hyperparameters of this run, and the tags of scalars to show beside them. One call per
// run is enough; of several the last counts.
//   summary::HParams({{"learning_rate", 0.1}, {"optimizer", "adam"}}, {"loss"});
void HParams(const std::vector<HParam>& hparams, const std::vector<std::string>& metrics = {});

// The graph tab: a node for each module below `module`, and for each parameter and buffer with its shape. Only the
// program knows what forward does with them, so there are no edges between modules. Made in the first step that is
// written.
void Graph(const torch::nn::Module& module);

// Whether this step's summaries will be written: for values that are expensive to compute.
bool Wanted();

// Everything registered in this step so far as one encoded `Summary` message; for SummarySaverOptions::summary_op and
// for writers of the program's own. HParams and Graph aren't part of it.
std::string MergeAll();

}  // namespace muster::summary
