#include "examples/experiment_iris/iris.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

muster::Dataset Irises(const std::string& csv) {
  return muster::Dataset::FromCsv({csv}, {.groups = {{"feature", {}}}, .label = "species"})
      .Map([](muster::Example& flower) {
        const auto species = static_cast<int32_t>(flower.labels.As<int64_t>()[0]);
        flower.labels = muster::Array::Of<int32_t>({1}, std::vector<int32_t>{species});
        return absl::OkStatus();
      })
      .Batch(100)
      .Cache()
      .Repeat();
}

std::string IrisCsv() {
  const std::string csv = "examples/experiment_iris/iris.csv";
  std::error_code failed;
  if (std::filesystem::exists(csv, failed)) return csv;
  // build/release/bin/experiment_iris
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::filesystem::path built = program.parent_path() / "../../.." / csv;
  return std::filesystem::exists(built, failed) ? built.lexically_normal().string() : csv;
}
