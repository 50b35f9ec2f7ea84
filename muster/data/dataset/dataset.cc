#include "muster/data/dataset/dataset.h"

#include <utility>

#include "muster/data/sources/csv_source.h"
#include "muster/data/sources/file_sources.h"
#include "muster/data/sources/idx_source.h"
#include "muster/data/sources/image_folder_source.h"
#include "muster/data/stages/dataset_stage.h"
#include "muster/data/stages/dataset_stream.h"
#include "muster/data/stages/stages.h"

namespace muster {

Dataset Dataset::FromMemory(Example rows) { return Dataset(MakeMemoryStage(std::move(rows))); }

Dataset Dataset::FromRows(std::shared_ptr<const LabelledRows> rows) { return Dataset(MakeRowsStage(std::move(rows))); }

Dataset Dataset::FromStream(std::string description, OpenFunction open) {
  return Dataset(MakeFromStreamStage(std::move(description), std::move(open)));
}

Dataset Dataset::FromCsv(std::vector<std::string> files, CsvColumns columns, FileSystem& system) {
  return Dataset(std::make_shared<CsvSource>(std::move(files), std::move(columns), system));
}

Dataset Dataset::FromIdx(std::string images, std::string labels, FileSystem& system) {
  return Dataset(std::make_shared<IdxSource>(std::move(images), std::move(labels), system));
}

Dataset Dataset::FromImageFolders(std::string directory, ImageFolderOptions options, FileSystem& system) {
  return Dataset(std::make_shared<ImageFolderSource>(std::move(directory), std::move(options), system));
}

Dataset Dataset::Interleave(std::vector<Dataset> sources, InterleaveOptions options) {
  std::vector<StagePtr> stages;
  for (const Dataset& source : sources) stages.push_back(source.stage_);
  return Dataset(MakeInterleaveStage(std::move(stages), options));
}

Dataset Dataset::Map(MapFunction function, MapOptions options) const {
  return Dataset(MakeMapStage(stage_, std::move(function), options));
}

Dataset Dataset::Shuffle(ShuffleOptions options) const { return Dataset(MakeShuffleStage(stage_, options)); }

Dataset Dataset::Shard(size_t shards, size_t shard) const { return Dataset(MakeShardStage(stage_, shards, shard)); }

Dataset Dataset::ShareBy(std::shared_ptr<WorkSource> work) const {
  return Dataset(MakeShareByStage(stage_, std::move(work)));
}

Dataset Dataset::Batch(size_t size, bool drop_remainder) const {
  return Dataset(MakeBatchStage(stage_, size, drop_remainder));
}

Dataset Dataset::Repeat(int64_t epochs) const { return Dataset(MakeRepeatStage(stage_, epochs)); }

Dataset Dataset::Take(int64_t count) const { return Dataset(MakeTakeStage(stage_, count)); }

Dataset Dataset::Skip(int64_t count) const { return Dataset(MakeSkipStage(stage_, count)); }

Dataset Dataset::Cache() const { return Dataset(MakeCacheStage(stage_)); }

Dataset Dataset::Prefetch(size_t depth) const { return Dataset(MakePrefetchStage(stage_, depth)); }

std::optional<int64_t> Dataset::size() const { return stage_->CheckAll().ok() ? stage_->size() : std::nullopt; }

std::string Dataset::Describe() const { return stage_->Describe(); }

absl::StatusOr<std::unique_ptr<ExampleStream>> Dataset::Open() const { return DatasetStream::Open(stage_); }

}  // namespace muster
