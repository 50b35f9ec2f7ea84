#include "bench/peers/data.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/peers/buffer_source.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/safetensors_file.h"
#include "muster/store/model/row_initializer.h"
#include "muster/train/threads/error.h"

namespace muster::bench {
namespace {

constexpr int64_t kImageRing = 16;        // 5 MB: more than a core's own cache
constexpr int64_t kEmbeddingRing = 64;    // their rows together are 64 MB
constexpr int64_t kEmbeddingBatch = 128;  // examples, 32 rows each: 4,096 rows a minibatch

std::string PathOf(const std::string& folder, const std::string& model, const std::string& what) {
  return absl::StrCat(folder, "/", model, ".", what);
}

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

void WriteTensors(const std::string& path, const NamedTensors& tensors) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    views.push_back({.name = name,
                     .dtype = tensor.scalar_type() == torch::kInt64 ? DType::kInt64 : DType::kFloat32,
                     .shape = tensor.sizes().vec(),
                     .bytes = ByteSpan(bytes, tensor.nbytes())});
  }
  ThrowIfError(WriteTensorFile(PosixFileSystem(), path, views).status());
}

torch::Tensor ReadTensor(const TensorFileReader& file, const std::string& name) {
  const TensorInfo* info = file.Find(name);
  if (info == nullptr) throw Error(absl::NotFoundError(absl::StrCat(file.path(), " has no tensor ", name)));
  torch::Tensor tensor = torch::empty(info->shape, info->dtype == DType::kInt64 ? torch::kInt64 : torch::kFloat32);
  ThrowIfError(file.Read(name, MutableByteSpan(static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes())));
  return tensor;
}

std::unique_ptr<TensorFileReader> OpenFile(const std::string& path) {
  auto file = TensorFileReader::Open(PosixFileSystem(), path);
  ThrowIfError(file.status());
  return *std::move(file);
}

// Returns the same table as the parameter servers make.
torch::Tensor InitialTable() {
  torch::Tensor table = torch::empty({kTableRows, kTableWidth});
  const VariableSpec variable = {.name = "table.weight",
                                 .shape = {kTableRows, kTableWidth},
                                 .kind = VariableKind::kRows,
                                 .table = {.initial = TableInitializer()}};
  const auto placed = PlaceVariables({variable}, 1, Placement::kRoundRobin, {});
  ThrowIfError(placed.status());
  InitializeRows(variable, placed->slices[0], 0,
                 MutableByteSpan(static_cast<std::byte*>(table.mutable_data_ptr()), table.nbytes()));
  return table;
}

void WriteInitialValues(const std::string& path, const std::string& model) {
  torch::manual_seed(7);
  NamedTensors tensors;
  for (const auto& parameter : MakePeerModel(model, false).module->named_parameters())
    tensors.emplace_back(parameter.key(), parameter.value().detach().contiguous());
  if (model == "embedding") tensors.emplace_back("table.weight", InitialTable());
  WriteTensors(path, tensors);
}

// Each class is a pattern under noise, so that there is something to learn and losses fall.
void WriteImages(const std::string& path, int worker) {
  torch::manual_seed(1);
  const torch::Tensor patterns = torch::rand({10, 784});
  torch::manual_seed(100 + worker);
  const torch::Tensor labels = torch::randint(10, {kImageRing, 100}, torch::kInt64);
  const torch::Tensor noise = torch::rand({kImageRing, 100, 784});
  const torch::Tensor seen = patterns.index_select(0, labels.flatten()).view_as(noise);
  WriteTensors(path, {{"inputs", ((noise + seen) * 0.5).contiguous()}, {"labels", labels}});
}

void WriteBags(const std::string& path, int worker) {
  torch::manual_seed(100 + worker);
  const torch::Tensor rows = torch::randint(kTableRows, {kEmbeddingRing, kEmbeddingBatch, 32}, torch::kInt64);
  WriteTensors(path, {{"inputs", rows}, {"labels", rows.select(2, 0).remainder(10).contiguous()}});
}

void WriteWork(const std::string& folder, const std::string& model, double learning_rate) {
  std::ofstream(PathOf(folder, model, "json")) << nlohmann::json({{"learning_rate", learning_rate}}) << "\n";
}

}  // namespace

void WritePeerData(const std::string& folder, const std::string& model) {
  std::filesystem::create_directories(folder);
  if (model == "push_pull") {
    WriteTensors(PathOf(folder, model, "initial.safetensors"), {{"buffer", torch::zeros({kBufferElements})}});
    WriteWork(folder, model, kBufferLearningRate);
    return;
  }
  WriteInitialValues(PathOf(folder, model, "initial.safetensors"), model);
  for (int worker = 0; worker < kPeerWorkers; ++worker) {
    const std::string path = PathOf(folder, model, absl::StrCat("batches.", worker, ".safetensors"));
    if (model == "embedding") {
      WriteBags(path, worker);
    } else {
      WriteImages(path, worker);
    }
  }
  // Large enough that 200 steps show in the loss; each of the embedding's rows has a small share in it.
  const std::map<std::string, double> learning_rates = {{"conv", 0.02}, {"embedding", 1}};
  const auto found = learning_rates.find(model);
  WriteWork(folder, model, found == learning_rates.end() ? kMlpLearningRate : found->second);
}

void LoadInitialValues(torch::nn::Module& module, const std::string& folder, const std::string& model) {
  const auto file = OpenFile(PathOf(folder, model, "initial.safetensors"));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters()) parameter.value().copy_(ReadTensor(*file, parameter.key()));
}

double LearningRateOf(const std::string& folder, const std::string& model) {
  std::ifstream file(PathOf(folder, model, "json"));
  return nlohmann::json::parse(file).at("learning_rate");
}

PeerBatches::PeerBatches(const std::string& folder, const std::string& model, int worker) {
  const auto file = OpenFile(PathOf(folder, model, absl::StrCat("batches.", worker, ".safetensors")));
  const torch::Tensor inputs = ReadTensor(*file, "inputs"), labels = ReadTensor(*file, "labels");
  for (int64_t i = 0; i < inputs.size(0); ++i) batches_.push_back({inputs[i], labels[i]});
}

}  // namespace muster::bench
