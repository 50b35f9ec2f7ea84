#include "muster/train/hooks/gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/element_values.h"
#include "muster/summary/value_histogram.h"
#include "muster/train/hooks/timer_options.h"

namespace muster {
namespace {

// How many elements are converted at once.
constexpr size_t kPiece = 1024;

using Elements = absl::FunctionRef<void(std::span<const double>)>;

void ForEachPiece(DType dtype, ByteSpan bytes, Elements take) {
  std::array<double, kPiece> piece;
  const size_t piece_bytes = kPiece * DTypeSize(dtype);
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    const ByteSpan part = bytes.subspan(at, std::min(piece_bytes, bytes.size() - at));
    const std::span<double> values(piece.data(), part.size() / DTypeSize(dtype));
    ElementsToDoubles(dtype, part, values);
    take(values);
  }
}

// A row that was looked up several times has several gradients, whose sum is the row's.
void ForEachRow(const RowsIn& rows, Elements take) {
  if (rows.indices.empty()) return;
  const size_t width = rows.values.size() / rows.indices.size() / DTypeSize(rows.dtype);
  std::map<int64_t, std::vector<double>> sums;
  std::vector<double> row(width);
  for (size_t i = 0; i < rows.indices.size(); ++i) {
    const size_t row_bytes = width * DTypeSize(rows.dtype);
    ElementsToDoubles(rows.dtype, rows.values.subspan(i * row_bytes, row_bytes), row);
    std::vector<double>& sum = sums[rows.indices[i]];
    sum.resize(width);
    for (size_t j = 0; j < width; ++j) sum[j] += row[j];
  }
  for (const auto& [index, sum] : sums) take(sum);
}

// Calls `take` for every variable that has a gradient, with its elements in pieces.
void ForEachGradient(const GradientView& view,
                     absl::FunctionRef<void(const std::string& name, absl::FunctionRef<void(Elements)> pieces)> take) {
  for (size_t i = 0; i < view.variables.size(); ++i) {
    const ByteSpan gradient = view.gradient(i);
    if (gradient.empty()) continue;
    const VariableSpec& variable = view.variables[i];
    take(variable.name, [&](Elements elements) { ForEachPiece(variable.dtype, gradient, elements); });
  }
  for (const TableGradient& table : view.rows)
    take(view.variables[table.variable].name, [&](Elements elements) { ForEachRow(table.rows, elements); });
}

// Decides when a run is looked at.
class GradientHook : public SessionHook {
 public:
  GradientHook(const char* name, const GradientSummaryOptions& options)
      : timer_(MakeTimer(name, options.save_steps, options.save_interval, "save_steps and save_interval")) {}

  absl::Status Begin() override { return timer_.status(); }
  absl::Status BeforeRun(RunContext& context) override {
    const SessionContext& session = context.session();
    looks_ = session.summaries != nullptr && timer_->ShouldTriggerForStep(session.global_step + 1, session.now);
    if (looks_) context.ObserveGradients([this](const GradientView& view) { Observe(view); });
    return absl::OkStatus();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (!std::exchange(looks_, false)) return absl::OkStatus();
    timer_->UpdateLastTriggered(values.global_step, context.session().now);
    return Write(*context.session().summaries, values.global_step);
  }

 private:
  virtual void Observe(const GradientView& view) = 0;
  [[nodiscard]] virtual absl::Status Write(EventFileWriter& summaries, int64_t step) = 0;

  absl::StatusOr<SecondOrStepTimer> timer_;
  bool looks_ = false;
};

class GradientNormsHook final : public GradientHook {
 public:
  explicit GradientNormsHook(const GradientSummaryOptions& options) : GradientHook("GradientNorms", options) {}

 private:
  void Observe(const GradientView& view) override {
    double all = 0;
    norms_.assign(1, {"global_norm/gradient_norm", 0});
    ForEachGradient(view, [&](const std::string& name, absl::FunctionRef<void(Elements)> pieces) {
      double squares = 0;
      pieces([&squares](std::span<const double> values) {
        for (const double value : values) squares += value * value;
      });
      norms_.push_back({absl::StrCat("gradient_norm/", name), static_cast<float>(std::sqrt(squares))});
      all += squares;
    });
    norms_[0].value = static_cast<float>(std::sqrt(all));
  }
  absl::Status Write(EventFileWriter& summaries, int64_t step) override { return summaries.AddScalars(norms_, step); }

  std::vector<ScalarSummary> norms_;
};

class GradientHistogramsHook final : public GradientHook {
 public:
  explicit GradientHistogramsHook(const GradientSummaryOptions& options)
      : GradientHook("GradientHistograms", options) {}

 private:
  void Observe(const GradientView& view) override {
    histograms_.clear();
    ForEachGradient(view, [&](const std::string& name, absl::FunctionRef<void(Elements)> pieces) {
      HistogramBuilder histogram;
      pieces([&histogram](std::span<const double> values) { histogram.Add(values); });
      if (histogram.not_finite() > 0)
        LogWarning("the gradient of ", name, " has ", histogram.not_finite(), " values that are NaN or infinite");
      histograms_.emplace_back(absl::StrCat("gradients/", name), histogram.Build());
    });
  }
  absl::Status Write(EventFileWriter& summaries, int64_t step) override {
    for (const auto& [tag, histogram] : histograms_) RETURN_IF_ERROR(summaries.AddHistogram(tag, histogram, step));
    return absl::OkStatus();
  }

  std::vector<std::pair<std::string, ValueHistogram>> histograms_;
};

}  // namespace

std::shared_ptr<SessionHook> GradientNorms(const GradientSummaryOptions& options) {
  return std::make_shared<GradientNormsHook>(options);
}

std::shared_ptr<SessionHook> GradientHistograms(const GradientSummaryOptions& options) {
  return std::make_shared<GradientHistogramsHook>(options);
}

}  // namespace muster
