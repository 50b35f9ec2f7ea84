#include "examples/digits/report.h"

#include <nlohmann/json.hpp>

#include "muster/base/files/file_system.h"

void WriteReport(const std::string& path, const RunReport& report) {
  nlohmann::ordered_json json = {
      {"accuracy", report.accuracy},
      {"global_steps", report.global_steps},
      {"seconds", report.seconds},
      {"steps_per_second", report.seconds > 0 ? report.steps_in_that_time / report.seconds : 0},
      {"checkpoint", report.checkpoint},
      {"ps", nlohmann::ordered_json::array()}};
  for (const std::string& page : report.ps_status) json["ps"].push_back(nlohmann::ordered_json::parse(page));
  const std::string text = json.dump(1) + "\n";
  muster::ThrowIfError(
      muster::WriteFileAtomically(muster::PosixFileSystem(), path, muster::AsBytes(text.data(), text.size())));
}
