// Formats checkpoints for `muster checkpoint`, for people and as JSON. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "muster/checkpoint/checkpoint_listing.h"
#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/tensor_statistics.h"

namespace muster {

// Returns one line per checkpoint under a line of headings, or one line of JSON.
std::string ListingTable(const std::vector<ListedCheckpoint>& checkpoints);
std::string ListingJson(const std::vector<ListedCheckpoint>& checkpoints);

// Describes a whole checkpoint, under the name `path`.
std::string ManifestText(const Manifest& manifest, const std::string& path);
std::string ManifestJson(const Manifest& manifest, const std::string& path);

// Statistics of one of the requested tensors.
struct NamedStatistics {
  std::string name;  // "w", or "w/momentum" for a slot
  TensorStatistics statistics;
};
std::string StatisticsTable(const std::vector<NamedStatistics>& tensors);
std::string StatisticsJson(const std::vector<NamedStatistics>& tensors);

}  // namespace muster
