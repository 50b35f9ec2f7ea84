#include "examples/digits/input.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "muster/data/dataset/dataset.h"
#include "muster/data/images.h"
#include "muster/train/threads/error.h"

namespace {

Examples AsTensors(std::span<const float> features, std::span<const int64_t> labels, const muster::ImageData& shape) {
  const auto rows = static_cast<int64_t>(labels.size());
  // Both are only read, but torch has no read-only tensors.
  return {torch::from_blob(const_cast<float*>(features.data()),
                           {rows, 1, static_cast<int64_t>(shape.height), static_cast<int64_t>(shape.width)}),
          torch::from_blob(const_cast<int64_t*>(labels.data()), {rows}, torch::kInt64)};
}

}  // namespace

std::string DefaultCsv() {
  const std::string csv = "examples/data/digits.csv";
  std::error_code failed;
  if (std::filesystem::exists(csv, failed)) return csv;
  // build/release/bin/digits
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::filesystem::path built = program.parent_path() / "../../.." / csv;
  return std::filesystem::exists(built, failed) ? built.lexically_normal().string() : csv;
}

muster::ImageData LoadImages(const std::string& data_dir, const std::string& csv) {
  auto data = data_dir.empty() ? muster::LoadDigits(csv) : muster::LoadMnist(data_dir);
  if (data.ok()) return *std::move(data);
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, data_dir.empty() ? "--csv" : "--data_dir",
               std::string(data.status().message()).c_str());
  std::exit(static_cast<int>(muster::ExitCode::kUsage));
}

Examples AllOf(const muster::LabelledRows& data, const muster::ImageData& shape) {
  return AsTensors(data.features(), data.labels(), shape);
}

Input::Input(const muster::ImageData& data, size_t batch_size, uint64_t seed, int worker, int workers) : data_(data) {
  const std::shared_ptr<const muster::LabelledRows> borrowed(std::shared_ptr<void>(), &data.split.train);
  auto stream = muster::Dataset::FromRows(borrowed)
                    .Shuffle({.seed = seed})
                    .Shard(static_cast<size_t>(workers), static_cast<size_t>(worker))
                    .Batch(batch_size)
                    .Repeat()
                    .Prefetch()
                    .Open();
  muster::ThrowIfError(stream.status());
  stream_ = *std::move(stream);
}

Input::~Input() { stream_->Stop(); }

Examples Input::Next() {
  muster::ThrowIfError(stream_->Next(batch_).status());
  const muster::Array& features = batch_.features.front().value;
  return AsTensors(features.As<float>(), std::as_const(batch_.labels).As<int64_t>(), data_);
}

muster::Saveable Input::Position() {
  return {"input", [this] { return stream_->SavePosition(); },
          [this](const std::string& saved) { return stream_->RestorePosition(saved); }};
}
