// Reads examples from comma-separated files, one file after the other, line by line: Dataset::FromCsv. The number of
// rows isn't known before all have been read, so they can't be read by number; to restore a position, that many lines
// are skipped without parsing their numbers. Thread-safe; its streams aren't. Internal to muster/data.
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
  // The stream's errors: NotFound: any of the files is missing (at Begin); InvalidArgument, naming the file and, if
  // known, line and column: whatever CsvRows and SelectCsvColumns refuse, a file whose columns differ from the first
  // one's, a number that float32 can't hold, a label that isn't whole though int64 is wanted.
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
