// Examples that show where they come from, for tests of input pipelines: row i has the feature "x" float32 [2] = (i,
// -i) and the int64 label i, from memory or from a source that can only be read from its beginning. Functions are
// thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/data/dataset/dataset.h"

namespace muster {

inline Dataset NumberedRows(int64_t rows) {
  std::vector<float> values;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < rows; ++i) {
    values.insert(values.end(), {static_cast<float>(i), static_cast<float>(-i)});
    labels.push_back(i);
  }
  Example all{.labels = Array::Of({rows}, labels), .has_labels = true};
  all.features.push_back({"x", Array::Of({rows, 2}, values)});
  return Dataset::FromMemory(std::move(all));
}

// Returns the numbers 0 ... rows - 1, then `end`.
class NumberedStream : public ExampleStream {
 public:
  explicit NumberedStream(int64_t rows, absl::StatusOr<bool> end = false) : rows_(rows), end_(std::move(end)) {}

  absl::StatusOr<bool> Next(Example& into) override {
    if (next_ == rows_) return end_;
    const auto number = static_cast<float>(next_);
    into.features.resize(1);
    into.features[0] = {"x", Array::Of<float>({2}, {number, -number})};
    into.labels = Array::Scalar(next_++);
    into.has_labels = true;
    return true;
  }
  std::string SavePosition() const override { return ""; }
  absl::Status RestorePosition(const std::string&) override { return absl::UnimplementedError("no positions"); }
  void Stop() override {}

 private:
  const int64_t rows_;
  const absl::StatusOr<bool> end_;
  int64_t next_ = 0;
};

// `opened`, if given, counts how often the source was opened.
inline Dataset StreamedNumbers(int64_t rows, const absl::StatusOr<bool>& end = false, int* opened = nullptr) {
  return Dataset::FromStream(absl::StrCat("numbers(", rows, ")"), [rows, end, opened] {
    if (opened != nullptr) ++*opened;
    return std::unique_ptr<ExampleStream>(std::make_unique<NumberedStream>(rows, end));
  });
}

// The labels of each element.
using DrawnLabels = std::vector<std::vector<int64_t>>;

// Draws the next `count` elements, or all, checks that their features belong to their labels, and returns the labels.
inline DrawnLabels Draw(ExampleStream& stream, size_t count = 1000) {
  DrawnLabels drawn;
  Example element;
  while (drawn.size() < count) {
    if (!stream.Next(element).value()) break;
    const auto labels = element.labels.As<int64_t>();
    drawn.emplace_back(labels.begin(), labels.end());
    const auto values = element.Find("x")->As<float>();
    EXPECT_EQ(values.size(), 2 * labels.size());
    for (size_t i = 0; i < labels.size() && values.size() == 2 * labels.size(); ++i) {
      EXPECT_EQ(values[2 * i], static_cast<float>(labels[i]));
      EXPECT_EQ(values[2 * i + 1], -static_cast<float>(labels[i]));
    }
  }
  return drawn;
}

inline std::unique_ptr<ExampleStream> OpenOrFail(const Dataset& dataset) { return dataset.Open().value(); }

inline DrawnLabels DrawAll(const Dataset& dataset, size_t count = 1000) { return Draw(*OpenOrFail(dataset), count); }

// Concatenates the labels.
inline std::vector<int64_t> Flat(const DrawnLabels& drawn) {
  std::vector<int64_t> flat;
  for (const std::vector<int64_t>& labels : drawn) flat.insert(flat.end(), labels.begin(), labels.end());
  return flat;
}

// Returns the error with which opening a stream fails.
inline std::string OpenError(const Dataset& dataset) {
  const auto stream = dataset.Open();
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kInvalidArgument) << stream.status();
  return std::string(stream.status().message());
}

}  // namespace muster
