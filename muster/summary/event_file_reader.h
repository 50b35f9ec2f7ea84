// Reads TensorBoard event files, ours (docs/summary_format.md) and those of TensorFlow and PyTorch: scalars, how many
// values histograms hold, session marks. A file is read as far as it is whole: a record that is cut (its writer still
// runs, or was killed) or whose checksums are wrong ends it, as it does for TensorBoard. Functions without state,
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/files/file_system.h"

namespace muster {

struct SummaryEvent {
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  // By tag: simple_value, or a tensor of no dimensions (float or double) as TensorFlow 2 writes.
  std::vector<std::pair<std::string, double>> scalars;
  std::vector<std::pair<std::string, double>> histograms;  // how many values each holds
  int session_status = 0;                                  // a SessionStatus (event_file_writer.h); 0: none
  std::string checkpoint_path;

  // "7: loss=0.5 accuracy=0.25", "7: START"
  std::string ToString() const;
};

// Of a file's bytes: all events but those that only say the format's version.
std::vector<SummaryEvent> ReadEventFile(std::string_view bytes);

// Those of the file at `path`, one after the other; memory is that of the largest record and a few MB. Errors are those
// of the file system.
[[nodiscard]] absl::Status ReadEventFile(FileSystem& files, const std::string& path,
                                         const std::function<void(const SummaryEvent& event)>& take);

// Whether TensorBoard would take the file for one of events, by its name.
bool IsEventFileName(std::string_view name);

// Those of every event file of a directory, in the order of their names; none where there is no such directory.
std::vector<SummaryEvent> ReadEventFiles(FileSystem& files, const std::string& directory);

}  // namespace muster
