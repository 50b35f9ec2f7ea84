#include "muster/torch_bridge/module/embedding.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/torch_bridge/module/torch_dtype.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

void Refuse(absl::StatusCode code, const std::string& message) { throw Error(absl::Status(code, message)); }

}  // namespace

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& options)
    : torch::nn::Module("muster::Embedding"), options_(options) {
  if (options.rows < 1 || options.dimension < 1)
    Refuse(absl::StatusCode::kInvalidArgument, absl::StrCat("an embedding of ", options.rows, " rows of dimension ",
                                                            options.dimension, "; accepted: at least 1 of each"));
  if (!IsFloatingPoint(options.dtype))
    Refuse(absl::StatusCode::kInvalidArgument,
           absl::StrCat("an embedding of ", DTypeName(options.dtype), "; accepted: a floating-point type"));
}

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "muster::Embedding(rows=" << options_.rows << ", dimension=" << options_.dimension << ")";
}

VariableSpec EmbeddingImpl::SpecOf(const std::string& path) const {
  return {.name = path.empty() ? "weight" : path + ".weight",
          .dtype = options_.dtype,
          .shape = {options_.rows, options_.dimension},
          .kind = VariableKind::kRows,
          .table = {.partition = options_.partition, .initial = options_.initial}};
}

void EmbeddingImpl::LookUpThrough(std::string variable, LookUp look_up) {
  variable_ = std::move(variable);
  look_up_ = std::move(look_up);
}

void EmbeddingImpl::BeginMinibatch() {
  minibatch_ = {};
  gradient_rows_.clear();
  gradients_.reset();
  in_minibatch_ = true;
}

RowsIn EmbeddingImpl::EndMinibatch() {
  in_minibatch_ = false;
  const Rows rows = std::exchange(minibatch_, {});
  std::vector<torch::Tensor> parts;
  auto next = rows.indices.begin();
  for (const torch::Tensor& leaf : rows.leaves) {
    const auto end = next + leaf.size(0);
    // Rows may be looked up without being used in the loss.
    if (leaf.grad().defined()) {
      gradient_rows_.insert(gradient_rows_.end(), next, end);
      parts.push_back(leaf.grad());
    }
    next = end;
  }
  if (parts.empty()) return {.dtype = options_.dtype};
  gradients_ = (parts.size() == 1 ? parts[0] : torch::cat(parts)).contiguous();
  return {.indices = gradient_rows_,
          .dtype = options_.dtype,
          .values = {static_cast<const std::byte*>(gradients_.const_data_ptr()), gradients_.nbytes()}};
}

void EmbeddingImpl::Check(const torch::Tensor& ids) const {
  const std::string who = variable_.empty() ? "an embedding" : absl::StrCat("embedding '", variable_, "'");
  if (!ids.defined() || ids.scalar_type() != torch::kInt64)
    Refuse(absl::StatusCode::kInvalidArgument,
           absl::StrCat(who, " was given ids ",
                        ids.defined()
                            ? absl::StrCat("of type ", c10::toString(ids.scalar_type()), " on ", ids.device().str())
                            : "that are no tensor",
                        "; accepted: int64, as of ids.to(torch::kInt64)"));
  if (look_up_ == nullptr)
    Refuse(absl::StatusCode::kFailedPrecondition,
           absl::StrCat(who,
                        " has its rows on the parameter servers, and nothing to look them up: make a Replica of the "
                        "module, a trainer of it that isn't synchronous, and run it in a session"));
}

torch::Tensor EmbeddingImpl::PlacesOf(std::span<const int64_t> ids, Rows& rows) const {
  torch::Tensor places = torch::empty({static_cast<int64_t>(ids.size())}, torch::kInt64);
  int64_t* place = places.mutable_data_ptr<int64_t>();
  for (const int64_t id : ids) {
    if (id < 0 || id >= options_.rows)
      Refuse(absl::StatusCode::kInvalidArgument,
             absl::StrCat("row ", id, " is out of range: embedding '", variable_, "' has ", options_.rows, " rows"));
    const auto [known, added] = rows.places.try_emplace(id, static_cast<int64_t>(rows.indices.size()));
    if (added) rows.indices.push_back(id);
    *place++ = known->second;
  }
  return places;
}

torch::Tensor EmbeddingImpl::Fetch(const Rows& rows, int64_t first) const {
  const auto count = static_cast<int64_t>(rows.indices.size()) - first;
  torch::Tensor fetched = torch::empty({count, options_.dimension}, TorchDType(options_.dtype));
  if (count > 0)
    ThrowIfError(look_up_({.indices = std::span(rows.indices).subspan(first),
                           .dtype = options_.dtype,
                           .values = {static_cast<std::byte*>(fetched.mutable_data_ptr()), fetched.nbytes()}}));
  return fetched;
}

torch::Tensor EmbeddingImpl::forward(const torch::Tensor& ids) {
  Check(ids);
  const torch::Tensor flat = ids.to(torch::kCPU).contiguous();
  const std::span<const int64_t> wanted(flat.const_data_ptr<int64_t>(), flat.numel());
  Rows own;
  Rows& rows = in_minibatch_ && torch::GradMode::is_enabled() ? minibatch_ : own;
  const auto known = static_cast<int64_t>(rows.indices.size());
  const torch::Tensor places = PlacesOf(wanted, rows).view(ids.sizes());
  if (rows.leaves.empty() || static_cast<int64_t>(rows.indices.size()) > known)
    rows.leaves.push_back(Fetch(rows, known).requires_grad_(&rows == &minibatch_));
  // The rows are the host's; if the model computes on a GPU, its ids are there.
  return torch::embedding(rows.leaves.size() == 1 ? rows.leaves[0] : torch::cat(rows.leaves), places).to(ids.device());
}

}  // namespace muster
