// A quadratic whose gradients differ from worker to worker and from minibatch to minibatch by formula, and a model with
// these gradients. The tests of the algorithms' mathematics train it. Used by one thread at a time.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "muster/algo/sources/gradient_source.h"

namespace muster {

struct ScriptedProblem {
  double spread = 0.15;  // between the workers' optima; 0: all are the same
  double wave = 0.1;     // size of the part that differs by minibatch

  double Optimum(int worker, int element) const { return 0.8 * std::sin(0.7 * element + 0.3) + spread * (worker - 1); }
  double Gradient(int worker, int64_t minibatch, int element, double at) const {
    const double curvature = 0.6 + 0.2 * worker + 0.15 * (element % 4);
    return curvature * (at - Optimum(worker, element)) +
           wave * std::sin(1.3 * worker + 0.7 * static_cast<double>(minibatch) + 0.9 * element);
  }
  static double Start(int element) { return 0.5 * std::cos(1.1 * element); }
};

// Two variables of different shapes. Elements are numbered through both.
class ScriptedSource final : public GradientSource {
 public:
  // `dtype` is float32 or float64; `columns` is the width of the first variable.
  ScriptedSource(const ScriptedProblem& problem, int worker, DType dtype, int64_t columns = 4)
      : problem_(problem),
        worker_(worker),
        variables_(
            {{.name = "w", .dtype = dtype, .shape = {3, columns}}, {.name = "b", .dtype = dtype, .shape = {5}}}) {
    for (const VariableSpec& variable : variables_) {
      values_.emplace_back(variable.bytes());
      gradients_.emplace_back(variable.bytes());
    }
    std::vector<double> start(size());
    for (size_t i = 0; i < start.size(); ++i) start[i] = ScriptedProblem::Start(static_cast<int>(i));
    SetValues(start);
  }

  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return values_[i]; }
  ByteSpan gradient(size_t i) override { return gradients_[i]; }
  absl::StatusOr<double> ComputeGradients() override {
    std::vector<double> all = Values();
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = problem_.Gradient(worker_, minibatches_, static_cast<int>(i), all[i]);
    ++minibatches_;
    Split(all, gradients_);
    return 0.5;
  }

  size_t size() const { return static_cast<size_t>(variables_[0].elements() + variables_[1].elements()); }
  std::vector<double> Values() const { return Join(variables_[0].dtype, values_); }
  std::vector<double> Gradients() const { return Join(variables_[0].dtype, gradients_); }
  void SetValues(const std::vector<double>& all) { Split(all, values_); }

  // Concatenates the elements of all variables.
  static std::vector<double> Join(DType dtype, const std::vector<std::vector<std::byte>>& parts) {
    std::vector<double> all;
    for (const std::vector<std::byte>& part : parts)
      dtype == DType::kFloat64 ? Append<double>(part, all) : Append<float>(part, all);
    return all;
  }

 private:
  template <typename T>
  static void Append(const std::vector<std::byte>& part, std::vector<double>& all) {
    for (size_t at = 0; at < part.size(); at += sizeof(T)) {
      T element;
      std::memcpy(&element, part.data() + at, sizeof element);
      all.push_back(element);
    }
  }
  template <typename T>
  static void Put(const std::vector<double>& all, size_t first, std::vector<std::byte>& part) {
    for (size_t i = 0; i < part.size() / sizeof(T); ++i) {
      const T element = static_cast<T>(all[first + i]);
      std::memcpy(part.data() + i * sizeof(T), &element, sizeof element);
    }
  }
  void Split(const std::vector<double>& all, std::vector<std::vector<std::byte>>& parts) const {
    size_t first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      variables_[i].dtype == DType::kFloat64 ? Put<double>(all, first, parts[i]) : Put<float>(all, first, parts[i]);
      first += static_cast<size_t>(variables_[i].elements());
    }
  }

  const ScriptedProblem problem_;
  const int worker_;
  const std::vector<VariableSpec> variables_;
  std::vector<std::vector<std::byte>> values_;
  std::vector<std::vector<std::byte>> gradients_;
  int64_t minibatches_ = 0;
};

}  // namespace muster
