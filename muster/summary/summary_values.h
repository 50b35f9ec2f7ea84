// The values of a `Summary` message (tensorflow/core/framework/summary.proto), each appended to the bytes of one. As
// with every protobuf message, the concatenated bytes of two summaries are the summary of both. Which bytes:
// docs/summary_format.md. Thread-compatible.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/summary/png.h"
#include "muster/summary/value_histogram.h"

namespace muster {

void AppendScalar(std::string& summary, std::string_view tag, float value);

void AppendHistogram(std::string& summary, std::string_view tag, const ValueHistogram& histogram);

void AppendImage(std::string& summary, std::string_view tag, const PngImage& image);

// Markdown, which TensorBoard's text plugin shows.
void AppendText(std::string& summary, std::string_view tag, std::string_view text);

// Appends data that a TensorBoard plugin keeps in a value's metadata; the value itself is a tensor of one zero.
void AppendPluginContent(std::string& summary, std::string_view tag, std::string_view plugin, std::string_view content);

// InvalidArgument unless the bytes are those of a Summary, checked down to the fields of its values: TensorBoard reads
// nothing after an event that it can't read. `whose` begins the error: "the summary_op's bytes".
[[nodiscard]] absl::Status CheckSummary(std::string_view summary, const std::string& whose);

}  // namespace muster
