#include "muster/data/sources/csv_source.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/csv_rows.h"
#include "muster/data/file_lines.h"
#include "muster/data/sources/csv_columns.h"
#include "muster/data/sources/file_example.h"

namespace muster {
namespace {

// Not every whole number beyond it is a double, so a label might be learned that differs from the written one.
constexpr double kLargestCsvLabel = 9007199254740992.0;  // 2^53

class CsvStream final : public SequentialStream {
 public:
  explicit CsvStream(const CsvSource& source) : source_(source) {
    for (size_t i = 0; i < source.columns().groups.size(); ++i) shapes_.push_back({0});
  }

 protected:
  absl::Status Rewind(int64_t epoch) override;
  absl::StatusOr<bool> Read(Example& into) override;
  absl::StatusOr<bool> Pass() override { return TakeRow(); }

 private:
  struct Open {
    Open(const CsvSource& source, const std::string& path)
        : lines(source.system(), path),
          rows(path, {.header = source.columns().header, .delimiter = source.columns().delimiter}) {}
    FileLines lines;
    CsvRows rows;
    bool has_rows = false;
  };

  // Goes to the next row, in this file or a later one; false: there is none.
  absl::StatusOr<bool> TakeRow();
  // Called at the first row of each file.
  [[nodiscard]] absl::Status MeetColumns();
  [[nodiscard]] absl::Status CompareColumns() const;
  [[nodiscard]] absl::Status FillNumbers(std::span<const size_t> columns, std::span<float> values) const;
  [[nodiscard]] absl::Status FillLabel(size_t column, Example& into) const;

  const CsvSource& source_;

  size_t file_ = 0;  // the file that is open or will be opened next
  std::optional<Open> open_;
  // Taken from the first file.
  CsvSelection selection_;
  std::vector<std::string> names_;
  size_t columns_ = 0;
  std::vector<std::vector<int64_t>> shapes_;  // of the features
};

// Reports missing files before the first is read: the last may be hours away.
absl::Status CsvStream::Rewind(int64_t) {
  for (const std::string& path : source_.files()) RETURN_IF_ERROR(source_.system().FileSize(path).status());
  file_ = 0;
  open_.reset();
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvStream::TakeRow() {
  while (file_ < source_.files().size()) {
    if (!open_) open_.emplace(source_, source_.files()[file_]);
    std::string_view line;
    ASSIGN_OR_RETURN(const bool is_line, open_->lines.Next(line));
    if (!is_line) {
      RETURN_IF_ERROR(open_->rows.Finish());
      open_.reset();
      ++file_;
      continue;
    }
    ASSIGN_OR_RETURN(const bool is_row, open_->rows.Take(line));
    if (!is_row) continue;
    if (!open_->has_rows) RETURN_IF_ERROR(MeetColumns());
    open_->has_rows = true;
    return true;
  }
  return false;
}

absl::Status CsvStream::MeetColumns() {
  if (file_ > 0) return CompareColumns();
  const CsvRows& rows = open_->rows;
  ASSIGN_OR_RETURN(selection_, SelectCsvColumns(source_.columns(), source_.files()[0], rows.names(), rows.columns()));
  names_ = rows.names();
  columns_ = rows.columns();
  for (size_t i = 0; i < shapes_.size(); ++i) shapes_[i] = {static_cast<int64_t>(selection_.groups[i].size())};
  return absl::OkStatus();
}

// If a file was cut into parts, only the first part may have the header.
absl::Status CsvStream::CompareColumns() const {
  const std::string& first = source_.files()[0];
  const std::string& path = source_.files()[file_];
  const CsvRows& rows = open_->rows;
  if (rows.columns() != columns_) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", rows.columns(), " columns where ", first, " has ",
                                                   columns_, "; files read as one data set have the same"));
  }
  if (rows.names().empty() || names_.empty()) return absl::OkStatus();
  for (size_t i = 0; i < columns_; ++i) {
    if (rows.names()[i] == names_[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": column ", i + 1, " is called \"", ShownCsvField(rows.names()[i]), "\" where ", first,
                     " has \"", ShownCsvField(names_[i]), "\"; files read as one data set have the same"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvStream::Read(Example& into) {
  ASSIGN_OR_RETURN(const bool there, TakeRow());
  if (!there) return false;
  const std::vector<CsvColumns::Group>& groups = source_.columns().groups;
  into.features.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    Array& values = FitFeature(into, i, groups[i].feature, DType::kFloat32, shapes_[i]);
    RETURN_IF_ERROR(FillNumbers(selection_.groups[i], values.As<float>()));
  }
  into.has_labels = selection_.label.has_value();
  if (selection_.label) RETURN_IF_ERROR(FillLabel(*selection_.label, into));
  return true;
}

absl::Status CsvStream::FillNumbers(std::span<const size_t> columns, std::span<float> values) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    double value;
    RETURN_IF_ERROR(open_->rows.Number(columns[i], value));
    if (std::abs(value) > std::numeric_limits<float>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(open_->rows.PlaceOf(columns[i]), ": ", value, " is more than a float32 can hold"));
    }
    values[i] = static_cast<float>(value);
  }
  return absl::OkStatus();
}

absl::Status CsvStream::FillLabel(size_t column, Example& into) const {
  Array& label = FitLabel(into, source_.columns().label_dtype);
  if (label.dtype() == DType::kFloat32) return FillNumbers({&column, 1}, label.As<float>());
  double value;
  RETURN_IF_ERROR(open_->rows.Number(column, value));
  if (value != std::floor(value) || std::abs(value) > kLargestCsvLabel) {
    return absl::InvalidArgumentError(
        absl::StrCat(open_->rows.PlaceOf(column), ": the label ", ShownCsvField(open_->rows.fields()[column]),
                     " isn't a whole number within 2^53, as int64 labels are; label_dtype float32 takes others"));
  }
  label.As<int64_t>()[0] = static_cast<int64_t>(value);
  return absl::OkStatus();
}

}  // namespace

std::string CsvSource::Name() const {
  constexpr size_t kNamed = 3;
  std::string files = files_.empty() ? "" : FileNameOf(files_.front());
  if (files_.size() > kNamed) {
    absl::StrAppend(&files, " ... ", FileNameOf(files_.back()), ": ", files_.size(), " files");
  } else {
    for (size_t i = 1; i < files_.size(); ++i) absl::StrAppend(&files, ", ", FileNameOf(files_[i]));
  }
  return absl::StrCat("csv(", files, ")");
}

absl::Status CsvSource::Check() const {
  if (files_.empty()) return WrongOptionError("no files are named");
  return CheckCsvColumns(columns_);
}

absl::StatusOr<std::unique_ptr<StageStream>> CsvSource::MakeStream() const {
  return std::make_unique<CsvStream>(*this);
}

}  // namespace muster
