#include "muster/launch/watch/host_usage.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"

namespace muster {

namespace {

nlohmann::json JsonOf(const GpusInUse& gpus) {
  nlohmann::json json = {{"count", gpus.count}};
  if (gpus.percent.has_value()) json["percent"] = *gpus.percent;
  if (gpus.mem_bytes.has_value()) json["mem_bytes"] = *gpus.mem_bytes;
  if (gpus.mem_total.has_value()) json["mem_total"] = *gpus.mem_total;
  return json;
}

GpusInUse GpusOf(const nlohmann::json& json) {
  GpusInUse gpus{.count = json.at("count").get<int>()};
  if (json.contains("percent")) gpus.percent = json["percent"].get<double>();
  if (json.contains("mem_bytes")) gpus.mem_bytes = json["mem_bytes"].get<int64_t>();
  if (json.contains("mem_total")) gpus.mem_total = json["mem_total"].get<int64_t>();
  return gpus;
}

}  // namespace

absl::Status WriteHostUsage(const std::string& path, const std::map<TaskId, HostUsage>& usages) {
  nlohmann::json tasks = nlohmann::json::array();
  for (const auto& [task, usage] : usages)
    tasks.push_back({{"job", task.job},
                     {"index", task.index},
                     {"cpu_seconds", usage.cpu_seconds},
                     {"mem_bytes", usage.mem_bytes},
                     {"gpus", JsonOf(usage.gpus)},
                     {"restarts", usage.restarts},
                     {"when_us", absl::ToUnixMicros(usage.when)}});
  const std::string text = tasks.dump();
  FileSystem& files = PosixFileSystem();
  const std::string written = absl::StrCat(path, ".new");
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.CreateFile(written));
  RETURN_IF_ERROR(file->Append(AsBytes(text.data(), text.size())));
  RETURN_IF_ERROR(file->Close());
  return files.Rename(written, path);
}

std::map<TaskId, HostUsage> ReadHostUsage(const std::string& path) {
  std::map<TaskId, HostUsage> usages;
  const nlohmann::json tasks =
      nlohmann::json::parse(PosixFileSystem().ReadFile(path).value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!tasks.is_array()) return usages;
  try {
    for (const nlohmann::json& task : tasks)
      usages[{task.at("job").get<std::string>(), task.at("index").get<int>()}] = {
          .cpu_seconds = task.at("cpu_seconds").get<double>(),
          .mem_bytes = task.at("mem_bytes").get<int64_t>(),
          .gpus = GpusOf(task.at("gpus")),
          .restarts = task.at("restarts").get<int>(),
          .when = absl::FromUnixMicros(task.at("when_us").get<int64_t>())};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return usages;
}

}  // namespace muster
