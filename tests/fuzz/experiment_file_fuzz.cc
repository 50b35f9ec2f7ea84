// Any bytes as an experiment file give mistakes that each name the file, or an experiment that can be run.
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = muster::ParseExperimentFile(text, "fuzz.yml");
  if (!file.ok()) {
    const std::vector<std::string> lines = absl::StrSplit(std::string(file.status().message()), '\n');
    // Indented lines show the file's own below the mistake.
    for (const std::string& line : lines)
      MUSTER_CHECK(absl::StartsWith(line, "fuzz.yml:") || absl::StartsWith(line, "  "));
    return 0;
  }
  MUSTER_CHECK(!file->project.empty() && !file->run.empty() && file->concurrency > 0 && file->log_bytes > 0);
  for (const muster::ParameterSpec& parameter : file->parameters) MUSTER_CHECK(!parameter.values.empty());
  const auto runs = muster::RandomCombinations(file->parameters, 3, 1);
  MUSTER_CHECK(runs.ok() && !runs->empty());
  for (const std::string& command : file->run) {
    MUSTER_CHECK(muster::TemplateNames(command).ok());
    (void)muster::FillTemplate(command, runs->front());
  }
  return 0;
}
