// Examples from comma-separated files, one file after the other, line by line: Dataset::FromCsv. How many rows there
// are isn't known before all have been read, so they can't be read by number; to come back to a position so many lines
// are passed by, without making numbers of them. Thread-safe, its streams aren't. Internal to muster/data.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/data/sources/file_sources.h"
#include "muster/data/stages/dataset_stage.h"

namespace muster {

class CsvSource final : public DatasetStage {
 public:
  // Borrows `system`.
  CsvSource(std::vector<std::string> files, CsvColumns columns, FileSystem& system)
      : files_(std::move(files)), columns_(std::move(columns)), system_(system) {}

  std::string Name() const override;
  [[nodiscard]] absl::Status Check() const override;
  // The stream's errors: NotFound, a file isn't there (at Begin, of whichever file); InvalidArgument naming file, and
  // line and column where there are: what CsvRows and SelectCsvColumns refuse, a file whose columns aren't those of the
  // first one, a number that float32 can't hold, a label that isn't whole where int64 is asked for.
  absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const override;

  const std::vector<std::string>& files() const { return files_; }
  const CsvColumns& columns() const { return columns_; }
  FileSystem& system() const { return system_; }

 private:
  // Constant after construction.
  const std::vector<std::string> files_;
  const CsvColumns columns_;
  FileSystem& system_;
};

}  // namespace muster
