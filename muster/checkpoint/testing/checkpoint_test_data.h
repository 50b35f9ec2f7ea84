// A small checkpoint for the tests of this folder: variable "w" of 5 × 2 floats in two parts, with a slot and a counter
// per 4 elements of a slice, and the scalar "s".
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/safetensors_file.h"

namespace muster {

// Returns element i of "w" in the checkpoint of `step`.
inline float WeightOf(int64_t step, int i) { return static_cast<float>(step * 1000 + i); }

// Writes the parts, saved at second `step`, under their temporary names, and fills in the manifest. Stops at the first
// error.
inline absl::Status WriteParts(FileSystem& files, const std::string& directory, int64_t step,
                               const std::string& save_id, Manifest& manifest) {
  manifest = {.global_step = step,
              .saved_at = step * 1000,
              .save_id = save_id,
              .job = "job",
              .lease_epoch = 1,
              .writer = "ps:0"};
  std::vector<float> w(10), m(10);
  for (int i = 0; i < 10; ++i) {
    w[i] = WeightOf(step, i);
    m[i] = -w[i];
  }
  const std::vector<int64_t> t0 = {step, step + 5}, t1 = {step + 2};
  const double s = static_cast<double>(step) / 8;
  const std::vector<TensorView> tensors[] = {{{"w/0", DType::kFloat32, {3, 2}, AsBytes(w.data(), 6)},
                                              {"w/0/m", DType::kFloat32, {3, 2}, AsBytes(m.data(), 6)},
                                              {"w/0/t", DType::kInt64, {2}, AsBytes(t0.data(), 2)}},
                                             {{"w/1", DType::kFloat32, {2, 2}, AsBytes(w.data() + 6, 4)},
                                              {"w/1/m", DType::kFloat32, {2, 2}, AsBytes(m.data() + 6, 4)},
                                              {"w/1/t", DType::kInt64, {1}, AsBytes(t1.data(), 1)},
                                              {"s", DType::kFloat64, {}, AsBytes(&s, 1)}}};
  const int save_number = FreeSaveNumber(files, directory, step);
  for (int part = 0; part < 2; ++part) {
    const std::string file = PartFileName(step, part, 2, save_number);
    const auto summary = WriteTensorFile(files, JoinPath(directory, TemporaryName(file, save_id)), tensors[part]);
    if (!summary.ok()) return summary.status();
    manifest.parts.push_back({.file = file, .bytes = summary->bytes, .crc32c = summary->crc32c});
  }
  manifest.variables = {{.name = "w",
                         .shape = {5, 2},
                         .slices = {{0, "w/0", 0, {3, 2}}, {1, "w/1", 6, {2, 2}}},
                         .slots = {{.name = "m", .slices = {{0, "w/0/m", 0, {3, 2}}, {1, "w/1/m", 6, {2, 2}}}},
                                   {.name = "t",
                                    .dtype = DType::kInt64,
                                    .stride = 4,
                                    .slices = {{0, "w/0/t", 0, {3, 2}}, {1, "w/1/t", 6, {2, 2}}}}}},
                        {.name = "s", .dtype = DType::kFloat64, .slices = {{1, "s", 0, {}}}}};
  return absl::OkStatus();
}

inline absl::Status Save(FileSystem& files, const std::string& directory, int64_t step, const std::string& save_id) {
  Manifest manifest;
  absl::Status status = WriteParts(files, directory, step, save_id, manifest);
  return status.ok() ? CommitManifest(files, directory, manifest) : status;
}

}  // namespace muster
