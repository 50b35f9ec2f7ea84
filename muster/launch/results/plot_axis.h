// An axis of a plot: the places of values on it, and its labels. A plain value.
#pragma once

#include <string>
#include <vector>

namespace muster {

struct PlotTick {
  double at = 0;  // 0: start of the axis, 1: its end
  std::string text;
};

class PlotAxis {
 public:
  enum class Kind {
    kLinear,
    kLogarithmic,  // numbers above 0, the greatest at least 100 times the smallest
    kWords,        // not all finite numbers: one place per different value, in alphabetical order
  };

  // Makes an axis for all of `values`, at least one. `may_be_logarithmic` = false: linear at most.
  explicit PlotAxis(const std::vector<std::string>& values, bool may_be_logarithmic = true);

  Kind kind() const { return kind_; }
  // Returns the place, from 0 to 1, of one of the values.
  double Place(const std::string& value) const;
  // Returns round numbers, or words; at most a dozen.
  std::vector<PlotTick> Ticks() const;

 private:
  double PlaceOf(double number) const;  // in this axis' unit: its logarithm on a logarithmic axis

  Kind kind_ = Kind::kLinear;
  double low_ = 0, high_ = 1;  // ends of the axis, in that unit
  std::vector<std::string> words_;
};

}  // namespace muster
