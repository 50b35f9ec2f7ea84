#include "examples/digits/input.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "muster/data/images.h"
#include "muster/train/error.h"

namespace {

Examples AsTensors(std::span<const float> features, std::span<const int64_t> labels, const muster::ImageData& shape) {
  const auto rows = static_cast<int64_t>(labels.size());
  // Both are only read; torch has no read-only tensors.
  return {torch::from_blob(const_cast<float*>(features.data()),
                           {rows, 1, static_cast<int64_t>(shape.height), static_cast<int64_t>(shape.width)}),
          torch::from_blob(const_cast<int64_t*>(labels.data()), {rows}, torch::kInt64)};
}

}  // namespace

muster::ImageData LoadImages(const std::string& data_dir, const std::string& csv) {
  auto data = data_dir.empty() ? muster::LoadDigits(csv) : muster::LoadMnist(data_dir);
  if (data.ok()) return *std::move(data);
  std::fprintf(stderr, "digits: %s: %s\n", data_dir.empty() ? "--csv" : "--data_dir",
               std::string(data.status().message()).c_str());
  std::exit(static_cast<int>(muster::ExitCode::kUsage));
}

Examples AllOf(const muster::Dataset& data, const muster::ImageData& shape) {
  return AsTensors(data.features(), data.labels(), shape);
}

Input::Input(const muster::ImageData& data, size_t batch_size, uint64_t seed, int worker, int workers) : data_(data) {
  auto batcher = muster::Batcher::Create(data.split.train, {.batch_size = batch_size,
                                                            .seed = seed,
                                                            .shard = static_cast<size_t>(worker),
                                                            .shards = static_cast<size_t>(workers)});
  muster::ThrowIfError(batcher.status());
  batcher_ = std::make_unique<muster::Batcher>(*std::move(batcher));
}

Input::~Input() {
  if (prefetcher_) prefetcher_->Stop();
}

Examples Input::Next() {
  if (!prefetcher_) {
    prefetcher_ = std::make_unique<muster::Prefetcher>(std::move(batcher_));
    prefetcher_->Start();
  }
  muster::ThrowIfError(prefetcher_->Next(batch_).status());
  return AsTensors(batch_.features, batch_.labels, data_);
}

muster::Saveable Input::Position() {
  return {"input", [this] { return absl::StrCat(batch_.next.epoch, " ", batch_.next.offset); },
          [this](const std::string& text) -> absl::Status {
            muster::DataPosition position;
            if (std::sscanf(text.c_str(), "%ld %ld", &position.epoch, &position.offset) != 2)
              return absl::InvalidArgumentError("'" + text + "' is no position in the input");
            // Another number of workers or another batch size makes other shards: the epoch is then begun anew.
            if (batcher_->Seek(position).ok()) return absl::OkStatus();
            return batcher_->Seek({.epoch = position.epoch});
          }};
}
