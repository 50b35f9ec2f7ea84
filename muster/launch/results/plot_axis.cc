#include "muster/launch/results/plot_axis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace muster {
namespace {

constexpr size_t kMostPlotTicks = 12;
constexpr double kPlotMargin = 0.05;        // beyond each end, as a part of the values' span
constexpr double kLogarithmicFrom = 1.999;  // decades; below 2 because 0.1 / 0.001 isn't 100 to the last bit

// Returns a round number that fits into `span` about five times: 1, 2 or 5 times a power of 10.
double RoundStep(double span) {
  const double rough = span / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * 1.0001) return factor * power;
  return 10 * power;
}

}  // namespace

PlotAxis::PlotAxis(const std::vector<std::string>& values, bool may_be_logarithmic) {
  std::vector<double> numbers;
  for (const std::string& value : values) {
    double number = 0;
    if (absl::SimpleAtod(value, &number) && std::isfinite(number)) numbers.push_back(number);
  }
  if (numbers.size() < values.size()) {
    kind_ = Kind::kWords;
    const std::set<std::string> different(values.begin(), values.end());
    words_.assign(different.begin(), different.end());
    return;
  }
  const auto [smallest, greatest] = std::minmax_element(numbers.begin(), numbers.end());
  low_ = *smallest;
  high_ = *greatest;
  if (may_be_logarithmic && low_ > 0 && std::log10(high_) - std::log10(low_) >= kLogarithmicFrom) {
    kind_ = Kind::kLogarithmic;
    low_ = std::log10(low_);
    high_ = std::log10(high_);
  }
  // An empty span is drawn in the middle. Uses halves, so that none overflows a double.
  const double half = high_ / 2 - low_ / 2;
  const double margin = half > 0 ? std::min(half * 2 * kPlotMargin, 1e300) : std::max(std::abs(low_) * 0.1, 1e-9);
  low_ -= margin;
  high_ += margin;
}

double PlotAxis::PlaceOf(double number) const { return (number / 2 - low_ / 2) / (high_ / 2 - low_ / 2); }

double PlotAxis::Place(const std::string& value) const {
  if (kind_ == Kind::kWords) {
    const auto word = std::lower_bound(words_.begin(), words_.end(), value);
    return (static_cast<double>(word - words_.begin()) + 0.5) / static_cast<double>(words_.size());
  }
  double number = 0;
  if (!absl::SimpleAtod(value, &number)) return 0;
  return PlaceOf(kind_ == Kind::kLogarithmic ? std::log10(number) : number);
}

std::vector<PlotTick> PlotAxis::Ticks() const {
  std::vector<PlotTick> ticks;
  if (kind_ == Kind::kWords) {
    const size_t every = (words_.size() + kMostPlotTicks - 1) / kMostPlotTicks;
    for (size_t i = 0; i < words_.size(); i += every) ticks.push_back({Place(words_[i]), words_[i]});
    return ticks;
  }
  double step = RoundStep(high_ - low_);
  if (kind_ == Kind::kLogarithmic) step = std::max(1.0, std::round(step));
  if (!std::isfinite(step) || step <= 0) return ticks;
  const double first = std::ceil(low_ / step);
  for (size_t i = 0; i < kMostPlotTicks; ++i) {
    const double number = (first + static_cast<double>(i)) * step + 0.0;  // never -0
    if (number > high_) break;
    const double shown = kind_ == Kind::kLogarithmic ? std::pow(10, number) : number;
    ticks.push_back({PlaceOf(number), absl::StrFormat("%.6g", shown)});
  }
  return ticks;
}

}  // namespace muster
