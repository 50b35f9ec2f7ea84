// An axis of a plot: where a value lies on it, and what is written beside it. A plain value.
#pragma once

#include <string>
#include <vector>

namespace muster {

struct PlotTick {
  double at = 0;  // 0: the axis' beginning, 1: its end
  std::string text;
};

class PlotAxis {
 public:
  enum class Kind {
    kLinear,
    kLogarithmic,  // numbers above 0 of which the greatest is at least 100 times the smallest
    kWords,        // anything that isn't a finite number: a place for each different one, in alphabetical order
  };

  // For all of `values`, of which there is at least one. `may_be_logarithmic`: or only linear.
  explicit PlotAxis(const std::vector<std::string>& values, bool may_be_logarithmic = true);

  Kind kind() const { return kind_; }
  // From 0 to 1, of one of the values.
  double Place(const std::string& value) const;
  // Round numbers, or words; at most a dozen.
  std::vector<PlotTick> Ticks() const;

 private:
  double PlaceOf(double number) const;  // as it is counted on this axis: a logarithm on a logarithmic one

  Kind kind_ = Kind::kLinear;
  double low_ = 0, high_ = 1;  // of the axis, likewise
  std::vector<std::string> words_;
};

}  // namespace muster
