// What a training program registers for TensorBoard while it computes its loss: `muster::summary::Scalar("loss",
// loss)`, and the session's SummarySaver writes it when it is due. As tf.summary of TensorFlow 1, but a step is code
// that runs, so these are calls in it, not parts of a graph. A page for users: docs/summaries.md.
//
// Call them in the function that session.Run is given, on its thread; anywhere else they throw. Scalars are kept in
// every step (LoggingTensor and other hooks look at them); everything else returns at once in a step whose summaries
// nobody will write. Of two values with one tag in one step the later counts. All throw muster::Error.
#pragma once

#include <torch/torch.h>

#include <string>
#include <string_view>
#include <vector>

#include "muster/summary/hparams.h"

namespace muster::summary {

// `value`: one element of any type. On a device it is waited for.
void Scalar(std::string_view tag, const torch::Tensor& value);
void Scalar(std::string_view tag, double value);

// How many of the elements lie where, in TensorFlow's buckets. Error, as in TensorFlow: an element that isn't finite.
void Histogram(std::string_view tag, const torch::Tensor& values);

enum class ImageLayout { kNHWC, kNCHW };

// The first `max_outputs` of a batch, as "tag/image/0", "tag/image/1", …; "tag/image" if max_outputs is 1. uint8, or
// floating-point numbers from 0 to 1 (those outside are cut off, NaN is 0). 1 channel is grey, 2 grey and alpha, 3 RGB,
// 4 RGBA. The layout can't be guessed ([3, 3, 3, 3] is either), so it is said.
void Image(std::string_view tag, const torch::Tensor& images, ImageLayout layout, int max_outputs = 3);

// Markdown.
void Text(std::string_view tag, std::string_view text);

// A row of the HParams tab: what this run was started with, and the tags of scalars to show beside it. Once a run is
// enough; of several the last counts.
//   summary::HParams({{"learning_rate", 0.1}, {"optimizer", "adam"}}, {"loss"});
void HParams(const std::vector<HParam>& hparams, const std::vector<std::string>& metrics = {});

// The graph tab: a node for each module below `module`, for each parameter and buffer with its shape. What forward does
// with them is known to the program alone, so there are no edges between modules. Made in the first step that is
// written.
void Graph(const torch::nn::Module& module);

// Whether this step's summaries will be written: for values that cost something to compute.
bool Wanted();

// All that was registered in this step so far as one encoded `Summary` message; for SummarySaverOptions::summary_op and
// for writers of one's own. HParams and Graph aren't part of it.
std::string MergeAll();

}  // namespace muster::summary
