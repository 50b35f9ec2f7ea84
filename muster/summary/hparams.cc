#include "muster/summary/hparams.h"

#include <protozero/pbf_writer.hpp>

#include "muster/summary/shared_fields.h"
#include "muster/summary/summary_values.h"

namespace muster {
namespace {

using Tag = protozero::pbf_tag_type;

// HParamsPluginData. Its version, 0, is omitted like every zero.
constexpr Tag kDataExperiment = 2;
constexpr Tag kDataSessionStart = 3;
constexpr Tag kDataSessionEnd = 4;
constexpr Tag kStartHParams = 1;
constexpr Tag kEndStatus = 1;
constexpr Tag kEndTime = 2;
constexpr int32_t kStatusSuccess = 1;
// Experiment, HParamInfo, MetricInfo, MetricName.
constexpr Tag kExperimentHParamInfos = 4;
constexpr Tag kExperimentMetricInfos = 5;
constexpr Tag kHParamInfoName = 1;
constexpr Tag kHParamInfoType = 4;
constexpr Tag kMetricInfoName = 1;
constexpr Tag kMetricNameTag = 2;
// DataType, indexed by the variant's index.
constexpr int32_t kDataTypes[] = {3 /*FLOAT64*/, 2 /*BOOL*/, 1 /*STRING*/};
// google.protobuf.Value.
constexpr Tag kValueNumber = 2;
constexpr Tag kValueString = 3;
constexpr Tag kValueBool = 4;

constexpr char kPlugin[] = "hparams";

struct AddValue {
  protozero::pbf_writer& value;
  void operator()(double number) const { value.add_double(kValueNumber, number); }
  void operator()(bool flag) const { value.add_bool(kValueBool, flag); }
  void operator()(const std::string& text) const { value.add_string(kValueString, text); }
};

// Writes into a string of the caller's: nested messages are complete only when their writers are destroyed.
void EncodeExperiment(std::string& content, std::span<const HParam> hparams, std::span<const std::string> metrics) {
  protozero::pbf_writer data(content);
  protozero::pbf_writer experiment(data, kDataExperiment);
  for (const HParam& hparam : hparams) {
    protozero::pbf_writer info(experiment, kExperimentHParamInfos);
    info.add_string(kHParamInfoName, hparam.name);
    info.add_enum(kHParamInfoType, kDataTypes[hparam.value.index()]);
  }
  for (const std::string& metric : metrics) {
    protozero::pbf_writer info(experiment, kExperimentMetricInfos);
    protozero::pbf_writer name(info, kMetricInfoName);
    name.add_string(kMetricNameTag, metric);
  }
}

void EncodeSessionStart(std::string& content, std::span<const HParam> hparams) {
  protozero::pbf_writer data(content);
  protozero::pbf_writer start(data, kDataSessionStart);
  for (const HParam& hparam : hparams) {
    protozero::pbf_writer entry(start, kStartHParams);
    entry.add_string(kEntryKey, hparam.name);
    protozero::pbf_writer value(entry, kEntryValue);
    std::visit(AddValue{value}, hparam.value);
  }
}

void EncodeSessionEnd(std::string& content, absl::Time now) {
  protozero::pbf_writer data(content);
  protozero::pbf_writer end(data, kDataSessionEnd);
  end.add_enum(kEndStatus, kStatusSuccess);
  end.add_double(kEndTime, static_cast<double>(absl::ToUnixMicros(now)) / 1e6);
}

}  // namespace

void AppendHParams(std::string& summary, std::span<const HParam> hparams, std::span<const std::string> metrics) {
  std::string experiment, start;
  EncodeExperiment(experiment, hparams, metrics);
  EncodeSessionStart(start, hparams);
  AppendPluginContent(summary, "_hparams_/experiment", kPlugin, experiment);
  AppendPluginContent(summary, "_hparams_/session_start_info", kPlugin, start);
}

void AppendHParamsEnd(std::string& summary, absl::Time now) {
  std::string end;
  EncodeSessionEnd(end, now);
  AppendPluginContent(summary, "_hparams_/session_end_info", kPlugin, end);
}

}  // namespace muster
