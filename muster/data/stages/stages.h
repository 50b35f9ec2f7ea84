// Makes the stages of a Dataset. Each has its own file in this folder; Dataset's methods
// (muster/data/dataset/dataset.h) say what they do, and muster/data/stages/dataset_stage.h how they fit together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/data/labelled_rows.h"
#include "muster/data/stages/dataset_stage.h"
#include "muster/data/stages/stage_options.h"
#include "muster/data/work_source.h"

namespace muster {

using StagePtr = std::shared_ptr<const DatasetStage>;

StagePtr MakeMemoryStage(Example rows);
StagePtr MakeRowsStage(std::shared_ptr<const LabelledRows> rows);
StagePtr MakeFromStreamStage(std::string description, OpenStreamFunction open);
StagePtr MakeInterleaveStage(std::vector<StagePtr> sources, InterleaveOptions options);

StagePtr MakeMapStage(StagePtr before, MapFunction function, MapOptions options);
StagePtr MakeShuffleStage(StagePtr before, ShuffleOptions options);
StagePtr MakeShardStage(StagePtr before, size_t shards, size_t shard);
StagePtr MakeShareByStage(StagePtr before, std::shared_ptr<WorkSource> work);
StagePtr MakeBatchStage(StagePtr before, size_t size, bool drop_remainder);
StagePtr MakeRepeatStage(StagePtr before, int64_t epochs);
StagePtr MakeTakeStage(StagePtr before, int64_t count);
StagePtr MakeSkipStage(StagePtr before, int64_t count);
StagePtr MakeCacheStage(StagePtr before);
StagePtr MakePrefetchStage(StagePtr before, size_t depth);

}  // namespace muster
