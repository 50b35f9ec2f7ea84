// Any bytes as experiment.json or as a record are refused, or are what is written for them.
#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/check.h"
#include "muster/launch/registry/experiment_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto experiment = muster::ParseExperimentText(text); experiment.ok()) {
    const std::string written = muster::ExperimentText(*experiment);
    const auto again = muster::ParseExperimentText(written);
    MUSTER_CHECK(again.ok() && muster::ExperimentText(*again) == written);
  }
  if (const auto record = muster::ParseRecordText(text); record.ok()) {
    const std::string written = muster::RecordText(*record);
    const auto again = muster::ParseRecordText(written);
    MUSTER_CHECK(again.ok() && muster::RecordText(*again) == written);
  }
  return 0;
}
