#include "muster/torch_bridge/facade/summaries.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"
#include "muster/summary/step_summaries.h"
#include "muster/torch_bridge/module/torch_status.h"
#include "muster/train/threads/error.h"

namespace muster::summary {
namespace {

// Makes the error's text only if there is an error: Scalar is called in every step.
StepSummaries& Current(const char* function, std::string_view tag = {}) {
  absl::StatusOr<StepSummaries*> current = StepSummaries::Current(function);
  if (!current.ok() && !tag.empty())
    current = StepSummaries::Current(absl::StrCat(function, "(\"", std::string(tag), "\")"));
  ThrowIfError(current.status());
  return **current;
}

// Returns uint8 [n, height, width, channels], contiguous, in ordinary memory.
torch::Tensor Pixels(const torch::Tensor& images, ImageLayout layout, int64_t n) {
  torch::Tensor pixels = images.detach().narrow(0, 0, n);
  if (layout == ImageLayout::kNCHW) pixels = pixels.permute({0, 2, 3, 1});
  if (pixels.scalar_type() != torch::kUInt8)
    pixels = pixels.to(torch::kFloat).nan_to_num(0).clamp(0, 1).mul(255).round().to(torch::kUInt8);
  return pixels.to(torch::kCPU).contiguous();
}

absl::Status AddImages(StepSummaries& summaries, const std::string& tag, const torch::Tensor& images,
                       ImageLayout layout, int max_outputs) {
  if (images.dim() != 4 || (images.scalar_type() != torch::kUInt8 && !images.is_floating_point()))
    return absl::InvalidArgumentError(
        absl::StrCat("summary image ", tag, ": the images are ", c10::toString(images.scalar_type()), " [",
                     absl::StrJoin(images.sizes(), ", "),
                     "]; accepted: Byte (uint8), or floating point from 0 to 1, with 4 dimensions"));
  if (max_outputs < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("summary image ", tag, ": max_outputs is ", max_outputs, "; accepted: 1 or more"));
  const int64_t n = std::min<int64_t>(images.size(0), max_outputs);
  const torch::Tensor pixels = Pixels(images, layout, n);
  for (int64_t i = 0; i < n; ++i) {
    const torch::Tensor one = pixels[i];
    const ImageView view = {.height = static_cast<int>(one.size(0)),
                            .width = static_cast<int>(one.size(1)),
                            .channels = static_cast<int>(one.size(2)),
                            .pixels = {one.data_ptr<uint8_t>(), static_cast<size_t>(one.numel())}};
    RETURN_IF_ERROR(
        summaries.AddImage(max_outputs == 1 ? absl::StrCat(tag, "/image") : absl::StrCat(tag, "/image/", i), view));
  }
  return absl::OkStatus();
}

// "torch::nn::LinearImpl" -> "Linear": the name that a program uses.
std::string KindOf(const torch::nn::Module& module) {
  const std::string name = module.name();
  return std::string(absl::StripSuffix(absl::StripPrefix(name, "torch::nn::"), "Impl"));
}

// Turns torch's "conv.0.weight" into a path below `root`.
std::string PathOf(const std::string& root, const std::string& name) {
  return name.empty() ? root : absl::StrCat(root, "/", absl::StrReplaceAll(name, {{".", "/"}}));
}

GraphNode NodeOf(const std::string& path, const char* op, const torch::Tensor& tensor) {
  return {.name = path,
          .op = op,
          .shape = std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end()),
          .attributes = {{"dtype", c10::toString(tensor.scalar_type())}}};
}

std::vector<GraphNode> NodesOf(const torch::nn::Module& module) {
  const std::string root = KindOf(module);
  std::vector<GraphNode> nodes;
  const auto add = [&](const std::string& path, const torch::nn::Module& one) {
    GraphNode node = {.name = path, .op = KindOf(one)};
    int64_t elements = 0;
    std::vector<GraphNode> leaves;
    for (const auto& item : one.named_parameters(/*recurse=*/false)) {
      leaves.push_back(NodeOf(absl::StrCat(path, "/", item.key()), "Parameter", item.value()));
      elements += item.value().numel();
    }
    for (const auto& item : one.named_buffers(/*recurse=*/false))
      leaves.push_back(NodeOf(absl::StrCat(path, "/", item.key()), "Buffer", item.value()));
    for (const GraphNode& leaf : leaves) node.inputs.push_back(leaf.name);
    if (elements > 0) node.attributes.emplace_back("parameters", absl::StrCat(elements));
    nodes.push_back(std::move(node));
    nodes.insert(nodes.end(), std::make_move_iterator(leaves.begin()), std::make_move_iterator(leaves.end()));
  };
  add(root, module);
  for (const auto& item : module.named_modules(/*name_prefix=*/"", /*include_self=*/false))
    add(PathOf(root, item.key()), *item.value());
  return nodes;
}

}  // namespace

void Scalar(std::string_view tag, const torch::Tensor& value) {
  StepSummaries& summaries = Current("summary::Scalar", tag);
  ThrowIfError(CatchTorch("summary::Scalar", [&] {
    if (!value.defined() || value.numel() != 1)
      return absl::InvalidArgumentError(absl::StrCat("summary scalar ", std::string(tag), ": the tensor has ",
                                                     value.defined() ? value.numel() : 0, " elements, not 1"));
    summaries.AddScalar(tag, value.detach().item().toDouble());
    return absl::OkStatus();
  }));
}

void Scalar(std::string_view tag, double value) { Current("summary::Scalar", tag).AddScalar(tag, value); }

void Histogram(std::string_view tag, const torch::Tensor& values) {
  StepSummaries& summaries = Current("summary::Histogram", tag);
  if (!summaries.wanted()) return;
  ThrowIfError(CatchTorch("summary::Histogram", [&] {
    const torch::Tensor flat = values.detach().to(torch::kCPU, torch::kFloat).contiguous();
    return summaries.AddHistogram(tag, {flat.data_ptr<float>(), static_cast<size_t>(flat.numel())});
  }));
}

void Image(std::string_view tag, const torch::Tensor& images, ImageLayout layout, int max_outputs) {
  StepSummaries& summaries = Current("summary::Image", tag);
  if (!summaries.wanted()) return;
  ThrowIfError(CatchTorch("summary::Image",
                          [&] { return AddImages(summaries, std::string(tag), images, layout, max_outputs); }));
}

void Text(std::string_view tag, std::string_view text) {
  StepSummaries& summaries = Current("summary::Text", tag);
  if (summaries.wanted()) summaries.AddText(tag, text);
}

void HParams(const std::vector<HParam>& hparams, const std::vector<std::string>& metrics) {
  StepSummaries& summaries = Current("summary::HParams");
  if (summaries.wanted()) summaries.SetHParams(hparams, metrics);
}

void Graph(const torch::nn::Module& module) {
  StepSummaries& summaries = Current("summary::Graph");
  if (!summaries.wanted() || !summaries.graph().empty()) return;
  ThrowIfError(CatchTorch("summary::Graph", [&] {
    summaries.SetGraph(NodesOf(module));
    return absl::OkStatus();
  }));
}

bool Wanted() { return Current("summary::Wanted").wanted(); }

std::string MergeAll() { return Current("summary::MergeAll").MergeAll(); }

}  // namespace muster::summary
