#include "muster/summary/summary_values.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/summary/shared_fields.h"

namespace muster {
namespace {

using Tag = protozero::pbf_tag_type;

// Field numbers of tensorflow/core/framework/{summary,tensor,tensor_shape,types}.proto.
constexpr Tag kSummaryValue = 1;
constexpr Tag kValueTag = 1;
constexpr Tag kValueSimpleValue = 2;
constexpr Tag kValueImage = 4;
constexpr Tag kValueHisto = 5;
constexpr Tag kValueTensor = 8;
constexpr Tag kValueMetadata = 9;
constexpr Tag kImageHeight = 1;
constexpr Tag kImageWidth = 2;
constexpr Tag kImageColorspace = 3;
constexpr Tag kImageEncoded = 4;
constexpr Tag kHistoMin = 1;
constexpr Tag kHistoMax = 2;
constexpr Tag kHistoNum = 3;
constexpr Tag kHistoSum = 4;
constexpr Tag kHistoSumSquares = 5;
constexpr Tag kHistoBucketLimit = 6;
constexpr Tag kHistoBucket = 7;
constexpr Tag kMetadataPluginData = 1;
constexpr Tag kPluginName = 1;
constexpr Tag kPluginContent = 2;
constexpr Tag kTensorDtype = 1;
constexpr Tag kTensorShape = 2;
constexpr Tag kTensorFloatVal = 5;
constexpr Tag kTensorStringVal = 8;
constexpr int32_t kDtFloat = 1;
constexpr int32_t kDtString = 7;

void AddString(protozero::pbf_writer& message, Tag field, std::string_view text) {
  message.add_bytes(field, text.data(), text.size());
}

// Appends one value to the summary, with its tag; complete at the end of the scope.
struct NewValue {
  NewValue(std::string& summary, std::string_view tag) : message(summary), fields(message, kSummaryValue) {
    AddString(fields, kValueTag, tag);
  }
  protozero::pbf_writer message;
  protozero::pbf_writer fields;
};

void AddPlugin(protozero::pbf_writer& value, std::string_view plugin, std::string_view content) {
  protozero::pbf_writer metadata(value, kValueMetadata);
  protozero::pbf_writer data(metadata, kMetadataPluginData);
  AddString(data, kPluginName, plugin);
  if (!content.empty()) AddString(data, kPluginContent, content);
}

}  // namespace

void AppendScalar(std::string& summary, std::string_view tag, float value) {
  NewValue scalar(summary, tag);
  scalar.fields.add_float(kValueSimpleValue, value);
}

void AppendHistogram(std::string& summary, std::string_view tag, const ValueHistogram& histogram) {
  NewValue value(summary, tag);
  protozero::pbf_writer histo(value.fields, kValueHisto);
  histo.add_double(kHistoMin, histogram.min);
  histo.add_double(kHistoMax, histogram.max);
  histo.add_double(kHistoNum, histogram.num);
  histo.add_double(kHistoSum, histogram.sum);
  histo.add_double(kHistoSumSquares, histogram.sum_squares);
  histo.add_packed_double(kHistoBucketLimit, histogram.bucket_limit.begin(), histogram.bucket_limit.end());
  histo.add_packed_double(kHistoBucket, histogram.bucket.begin(), histogram.bucket.end());
}

void AppendImage(std::string& summary, std::string_view tag, const PngImage& image) {
  NewValue value(summary, tag);
  protozero::pbf_writer picture(value.fields, kValueImage);
  picture.add_int32(kImageHeight, image.height);
  picture.add_int32(kImageWidth, image.width);
  picture.add_int32(kImageColorspace, image.channels);  // 1 grey, 3 RGB, 4 RGBA: the number of channels
  AddString(picture, kImageEncoded, image.bytes);
}

void AppendText(std::string& summary, std::string_view tag, std::string_view text) {
  NewValue value(summary, tag);
  {
    protozero::pbf_writer tensor(value.fields, kValueTensor);
    tensor.add_enum(kTensorDtype, kDtString);
    tensor.add_message(kTensorShape, "", 0);  // a scalar
    AddString(tensor, kTensorStringVal, text);
  }
  AddPlugin(value.fields, "text", "");
}

void AppendPluginContent(std::string& summary, std::string_view tag, std::string_view plugin,
                         std::string_view content) {
  NewValue value(summary, tag);
  {
    protozero::pbf_writer tensor(value.fields, kValueTensor);
    tensor.add_enum(kTensorDtype, kDtFloat);
    {
      protozero::pbf_writer shape(tensor, kTensorShape);
      protozero::pbf_writer dim(shape, kShapeDim);
      dim.add_int64(kDimSize, 1);
    }
    const float zero = 0;
    tensor.add_packed_float(kTensorFloatVal, &zero, &zero + 1);
  }
  AddPlugin(value.fields, plugin, content);
}

absl::Status CheckSummary(std::string_view summary, const std::string& whose) {
  constexpr size_t kShown = 20;
  std::string why = "there are fields that a Summary hasn't";
  try {
    protozero::pbf_reader reader(summary.data(), summary.size());
    bool values_only = true;
    while (values_only && reader.next()) {
      values_only = reader.tag() == kSummaryValue && reader.wire_type() == protozero::pbf_wire_type::length_delimited;
      if (!values_only) break;
      for (protozero::pbf_reader value = reader.get_message(); value.next();) value.skip();
    }
    if (values_only) return absl::OkStatus();
  } catch (const protozero::exception& error) {
    why = error.what();
  }
  const std::string begin(summary.substr(0, kShown));
  return absl::InvalidArgumentError(absl::StrCat(whose, " are no Summary: ", why, " (", summary.size(), " bytes, \"",
                                                 absl::CHexEscape(begin), summary.size() > kShown ? "…" : "",
                                                 "\"); return summary::MergeAll(), or an encoded Summary message"));
}

}  // namespace muster
