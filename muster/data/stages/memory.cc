#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/stack_rows.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

// The rows of one array.
struct MemoryColumn {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> row_shape;
  const std::byte* data = nullptr;
  size_t row_bytes = 0;
};

// With a length known to the compiler, copying a label is one move.
template <size_t kBytes>
void CopyRowsOf(const std::byte* from, std::span<const size_t> rows, std::byte* into) {
  for (size_t i = 0; i < rows.size(); ++i) std::memcpy(into + i * kBytes, from + rows[i] * kBytes, kBytes);
}

void CopyMemoryRows(const MemoryColumn& column, std::span<const size_t> rows, std::byte* into) {
  const size_t bytes = column.row_bytes;
  if (bytes == 0) return;
  if (bytes == 4) return CopyRowsOf<4>(column.data, rows, into);
  if (bytes == 8) return CopyRowsOf<8>(column.data, rows, into);
  for (size_t i = 0; i < rows.size(); ++i) {
    // The processor's own prefetching can't predict rows in random order, so tell it where the next one begins.
    if (i + 1 < rows.size()) __builtin_prefetch(column.data + rows[i + 1] * bytes);
    std::memcpy(into + i * bytes, column.data + rows[i] * bytes, bytes);
  }
}

void GatherMemoryRows(const MemoryColumn& column, std::span<const size_t> rows, Array& into) {
  ResetRows(into, column.dtype, column.row_shape, rows.size());
  CopyMemoryRows(column, rows, into.data().data());
}

void ReadMemoryRow(const MemoryColumn& column, size_t row, Array& into) {
  into.Reset(column.dtype, column.row_shape);
  CopyMemoryRows(column, {&row, 1}, into.data().data());
}

class MemoryReader final : public RowReader {
 public:
  struct Columns {
    std::vector<MemoryColumn> features;
    MemoryColumn labels;
    bool has_labels = false;
  };

  // `owner` keeps alive what the columns point to.
  MemoryReader(size_t rows, Columns columns, std::shared_ptr<const void> owner)
      : rows_(rows), columns_(std::move(columns)), owner_(std::move(owner)) {}

  size_t rows() const override { return rows_; }
  absl::Status Read(size_t row, Example& into) const override {
    return Fill(into, [row](const MemoryColumn& column, Array& array) { ReadMemoryRow(column, row, array); });
  }
  absl::Status ReadBatch(std::span<const size_t> rows, Example& into, Example&) const override {
    return Fill(into, [rows](const MemoryColumn& column, Array& array) { GatherMemoryRows(column, rows, array); });
  }

 private:
  template <typename FillArray>
  absl::Status Fill(Example& into, const FillArray& fill) const {
    into.features.resize(columns_.features.size());
    for (size_t i = 0; i < columns_.features.size(); ++i) {
      const MemoryColumn& column = columns_.features[i];
      into.features[i].name = column.name;
      fill(column, into.features[i].value);
    }
    into.has_labels = columns_.has_labels;
    if (columns_.has_labels) fill(columns_.labels, into.labels);
    return absl::OkStatus();
  }

  const size_t rows_;
  const Columns columns_;
  const std::shared_ptr<const void> owner_;
};

MemoryColumn MemoryColumnOf(std::string name, const Array& array) {
  MUSTER_CHECK(!array.shape().empty());
  const size_t rows = static_cast<size_t>(array.shape()[0]);
  return {.name = std::move(name),
          .dtype = array.dtype(),
          .row_shape = {array.shape().begin() + 1, array.shape().end()},
          .data = array.data().data(),
          .row_bytes = rows == 0 ? 0 : array.bytes() / rows};
}

// Returns the reason why `rows` can't be read row by row, or OK.
absl::Status CheckMemoryRows(const Example& rows) {
  std::set<std::string> names;
  std::set<int64_t> counts;
  std::vector<std::string> described;
  bool scalars = false;
  const auto look = [&](const std::string& name, const Array& array) {
    scalars = scalars || array.shape().empty();
    if (!array.shape().empty()) counts.insert(array.shape()[0]);
    described.push_back(absl::StrCat(name, " [", absl::StrJoin(array.shape(), ", "), "]"));
  };
  for (const Feature& feature : rows.features) {
    if (!names.insert(feature.name).second) {
      return WrongOptionError(absl::StrCat("there are two features '", feature.name, "'"));
    }
    look(feature.name, feature.value);
  }
  if (rows.has_labels) look("the labels", rows.labels);
  if (described.empty()) return WrongOptionError("neither features nor labels");
  if (!scalars && counts.size() == 1) return absl::OkStatus();
  return WrongOptionError(
      absl::StrCat("the first dimensions, which count the rows, must agree: ", absl::StrJoin(described, ", ")));
}

class MemoryStage final : public DatasetStage {
 public:
  MemoryStage(absl::Status mistake, std::shared_ptr<const RowReader> reader)
      : mistake_(std::move(mistake)), reader_(std::move(reader)) {}

  std::string Name() const override { return absl::StrCat("memory(", reader_ ? reader_->rows() : 0, " rows)"); }
  absl::Status Check() const override { return mistake_; }
  std::optional<int64_t> size() const override { return reader_ ? static_cast<int64_t>(reader_->rows()) : 0; }
  bool indexed() const override { return true; }
  absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const override { return reader_; }

 private:
  const absl::Status mistake_;
  const std::shared_ptr<const RowReader> reader_;  // null if there is a mistake
};

}  // namespace

std::shared_ptr<const RowReader> ReadRowsOf(std::shared_ptr<const Example> rows) {
  MUSTER_CHECK(CheckMemoryRows(*rows).ok());
  MemoryReader::Columns columns;
  for (const Feature& feature : rows->features) columns.features.push_back(MemoryColumnOf(feature.name, feature.value));
  columns.has_labels = rows->has_labels;
  if (rows->has_labels) columns.labels = MemoryColumnOf("", rows->labels);
  const Array& first = rows->features.empty() ? rows->labels : rows->features[0].value;
  const auto count = static_cast<size_t>(first.shape()[0]);
  return std::make_shared<MemoryReader>(count, std::move(columns), std::move(rows));
}

StagePtr MakeMemoryStage(Example rows) {
  absl::Status mistake = CheckMemoryRows(rows);
  if (!mistake.ok()) return std::make_shared<MemoryStage>(std::move(mistake), nullptr);
  return std::make_shared<MemoryStage>(absl::OkStatus(), ReadRowsOf(std::make_shared<const Example>(std::move(rows))));
}

StagePtr MakeRowsStage(std::shared_ptr<const LabelledRows> rows) {
  if (rows == nullptr) return std::make_shared<MemoryStage>(WrongOptionError("no rows: a null pointer"), nullptr);
  MemoryReader::Columns columns;
  columns.features.push_back({.name = "features",
                              .dtype = DType::kFloat32,
                              .row_shape = {static_cast<int64_t>(rows->width())},
                              .data = AsBytes(rows->features().data(), rows->features().size()).data(),
                              .row_bytes = rows->width() * sizeof(float)});
  columns.labels = {.name = "",
                    .dtype = DType::kInt64,
                    .row_shape = {},
                    .data = AsBytes(rows->labels().data(), rows->labels().size()).data(),
                    .row_bytes = sizeof(int64_t)};
  columns.has_labels = true;
  const size_t count = rows->size();
  return std::make_shared<MemoryStage>(absl::OkStatus(),
                                       std::make_shared<MemoryReader>(count, std::move(columns), std::move(rows)));
}

}  // namespace muster
