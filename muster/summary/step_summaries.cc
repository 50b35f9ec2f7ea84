#include "muster/summary/step_summaries.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "muster/summary/summary_values.h"

namespace muster {
namespace {

StepSummaries*& OfThisThread() {
  thread_local StepSummaries* current = nullptr;
  return current;
}

template <typename Value>
void Put(std::vector<std::pair<std::string, Value>>& values, std::string_view tag, Value value) {
  const auto same = std::find_if(values.begin(), values.end(), [tag](const auto& kept) { return kept.first == tag; });
  if (same != values.end())
    same->second = std::move(value);
  else
    values.emplace_back(std::string(tag), std::move(value));
}

}  // namespace

StepSummaries::Scope::Scope(StepSummaries& summaries, bool wanted) : outer_(OfThisThread()) {
  summaries.wanted_ = wanted;
  summaries.scalars_.clear();
  summaries.others_.clear();
  OfThisThread() = &summaries;
}

StepSummaries::Scope::~Scope() { OfThisThread() = outer_; }

absl::StatusOr<StepSummaries*> StepSummaries::Current(std::string_view what) {
  if (StepSummaries* const current = OfThisThread()) return current;
  return absl::FailedPreconditionError(absl::StrCat(
      std::string(what),
      " was called outside a step: summaries are registered while session.Run is under way, in the function that "
      "computes the loss, on the thread that called Run"));
}

void StepSummaries::AddScalar(std::string_view tag, double value) { Put(scalars_, tag, value); }

absl::Status StepSummaries::AddHistogram(std::string_view tag, std::span<const float> values) {
  HistogramBuilder histogram;
  histogram.Add(values);
  if (histogram.not_finite() > 0) {
    const bool nan = std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); });
    return absl::InvalidArgumentError(
        absl::StrCat(nan ? "Nan" : "Infinity", " in summary histogram for: ", std::string(tag)));
  }
  std::string encoded;
  AppendHistogram(encoded, tag, histogram.Build());
  Keep(tag, std::move(encoded));
  return absl::OkStatus();
}

absl::Status StepSummaries::AddImage(std::string_view tag, const ImageView& image) {
  const auto png = EncodePng(image);
  if (!png.ok())
    return absl::InvalidArgumentError(absl::StrCat("summary image ", std::string(tag), ": ", png.status().message()));
  std::string encoded;
  AppendImage(encoded, tag, *png);
  Keep(tag, std::move(encoded));
  return absl::OkStatus();
}

void StepSummaries::AddText(std::string_view tag, std::string_view text) {
  std::string encoded;
  AppendText(encoded, tag, text);
  Keep(tag, std::move(encoded));
}

void StepSummaries::SetHParams(std::span<const HParam> hparams, std::span<const std::string> metrics) {
  hparams_.clear();
  AppendHParams(hparams_, hparams, metrics);
}

void StepSummaries::SetGraph(std::span<const GraphNode> nodes) { graph_ = EncodeGraph(nodes); }

void StepSummaries::Keep(std::string_view tag, std::string encoded) { Put(others_, tag, std::move(encoded)); }

std::string StepSummaries::EncodedOthers() const {
  std::string summary;
  for (const auto& [tag, encoded] : others_) summary += encoded;
  return summary;
}

std::string StepSummaries::MergeAll() const {
  std::string summary;
  for (const auto& [tag, value] : scalars_) AppendScalar(summary, tag, static_cast<float>(value));
  return summary + EncodedOthers();
}

}  // namespace muster
