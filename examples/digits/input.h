// The data of the digits example as tensors, from the shared CSV file or from MNIST's four files.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "muster/data/example_stream.h"
#include "muster/data/labelled_rows.h"
#include "muster/train/saving/saver.h"

struct Examples {
  torch::Tensor images;  // [batch, 1, height, width]
  torch::Tensor labels;  // [batch]
};

// Returns the path of the digits that come with the source: below the working directory, or where the program was
// built.
std::string DefaultCsv();
// Loads the data. Ends the process with exit code 2 if they can't be read; the message names file and line.
muster::ImageData LoadImages(const std::string& data_dir, const std::string& csv);

// Returns a whole data set as two tensors that share its memory.
Examples AllOf(const muster::LabelledRows& data, const muster::ImageData& shape);

// An endless stream of shuffled batches of this worker's shard, prepared by a thread from the first Next on.
class Input {
 public:
  Input(const muster::ImageData& data, size_t batch_size, uint64_t seed, int worker, int workers);
  ~Input();
  Examples Next();

  // Returns its place in the stream, for checkpoints: a restored run goes on after the last batch before the save.
  muster::Saveable Position();

 private:
  const muster::ImageData& data_;
  std::unique_ptr<muster::ExampleStream> stream_;
  muster::Example batch_;
};
