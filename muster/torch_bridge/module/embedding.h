// An embedding whose rows the parameter servers hold: a torch module without parameters of its own. A minibatch looks
// up the rows that it names, each once however often and in however many calls it is named. After the backward pass
// only the gradients of those rows are pushed, with the update of the dense variables. So the table may be larger than
// a worker's memory, and a step costs what its minibatch does.
//
// A ModuleSource (Replica) finds the embeddings of its module; the table is the variable "<path in the module>.weight",
// as torch::nn::Embedding's is. Not thread-safe: used by the training thread.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/cluster/placement/variable_spec.h"
#include "muster/store/model/rows.h"

namespace muster {

struct EmbeddingOptions {
  int64_t rows = 0;       // ids must be below
  int64_t dimension = 0;  // of one row
  RowPartition partition = RowPartition::kMod;
  // The initial values of a row; by default as torch::nn::Embedding's. The ps make them, from the seed.
  RowInitializer initial = RowInitializer::Normal(0, 1, 0);
  DType dtype = DType::kFloat32;  // a floating-point type
};

class EmbeddingImpl : public torch::nn::Module {
 public:
  // Throws Error: no rows, or rows without elements; a type that isn't floating point.
  explicit EmbeddingImpl(const EmbeddingOptions& options);

  // ids: int64 of any shape -> [ids' shape, dimension], on the ids' device. Inside the loss function of a session's
  // step the result takes part in autograd; outside, and under torch::NoGradGuard, it is just the values that the ps
  // hold at that moment. Throws Error: ids of another type; an id that isn't one of the table's rows (names both the id
  // and the number of rows); no session has begun; errors of a look-up on the ps.
  torch::Tensor forward(const torch::Tensor& ids);

  const EmbeddingOptions& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

  // The rest is for the source that the embedding belongs to.
  VariableSpec SpecOf(const std::string& path) const;
  using LookUp = std::function<absl::Status(const RowsOut& rows)>;
  // An empty `look_up` means that rows can't be looked up.
  void LookUpThrough(std::string variable, LookUp look_up);
  void BeginMinibatch();
  // Returns the rows that the minibatch has looked up and that have gradients; valid until the next one begins.
  RowsIn EndMinibatch();

 private:
  // Distinct rows in the order in which they were first named, and leaves of autograd that hold them.
  struct Rows {
    absl::flat_hash_map<int64_t, int64_t> places;
    std::vector<int64_t> indices;
    std::vector<torch::Tensor> leaves;  // one per call
  };

  void Check(const torch::Tensor& ids) const;
  // Adds to `rows` the `ids` that it lacks. Returns the place of each id.
  torch::Tensor PlacesOf(std::span<const int64_t> ids, Rows& rows) const;
  // Fetches the rows after those that the leaves have.
  torch::Tensor Fetch(const Rows& rows, int64_t first) const;

  const EmbeddingOptions options_;
  std::string variable_;
  LookUp look_up_;
  bool in_minibatch_ = false;
  Rows minibatch_;
  std::vector<int64_t> gradient_rows_;
  torch::Tensor gradients_;  // [gradient_rows_, dimension]
};

// Holds the module, as torch's holders do: Embedding words({.rows = 100000, .dimension = 64}).
class Embedding : public torch::nn::ModuleHolder<EmbeddingImpl> {
 public:
  using torch::nn::ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  // NOLINTNEXTLINE(google-explicit-constructor): as the modules of torch.
  Embedding(const EmbeddingOptions& options) : ModuleHolder(std::make_shared<EmbeddingImpl>(options)) {}
};

}  // namespace muster
