// What every framework of `bench peers` reads, so that all of them train the same: a folder with
//   MODEL.json                 {"learning_rate": …}; the rule is plain SGD
//   MODEL.initial.safetensors  the parameters' first values, shaped as torch has them
//   MODEL.batches.T.safetensors  worker T's minibatches, taken in turns: inputs [ring, batch, …], labels [ring, batch]
// The work push_pull has the first value of its buffer only.
#pragma once

#include <string>
#include <vector>

#include "bench/peers/models.h"

namespace muster::bench {

// Number of workers that have minibatches.
inline constexpr int kPeerWorkers = 2;

// Writes the files of a model, always with the same bytes.
void WritePeerData(const std::string& folder, const std::string& model);

// Sets the module's parameters to the initial values in the file. A table of rows on parameter servers isn't among
// them: these make the same values themselves.
void LoadInitialValues(torch::nn::Module& module, const std::string& folder, const std::string& model);

double LearningRateOf(const std::string& folder, const std::string& model);

// A worker's minibatches, in memory.
class PeerBatches {
 public:
  PeerBatches(const std::string& folder, const std::string& model, int worker);

  const PeerBatch& Next() { return batches_[next_++ % batches_.size()]; }

 private:
  std::vector<PeerBatch> batches_;
  size_t next_ = 0;
};

}  // namespace muster::bench
