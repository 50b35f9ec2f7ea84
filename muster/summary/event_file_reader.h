// Reads TensorBoard event files, ours (docs/summary_format.md) and those of TensorFlow and PyTorch: scalars, the number
// of values in histograms, session marks. Like TensorBoard, it reads a file up to the first record that is cut off (its
// writer still runs, or was killed) or has a wrong checksum. Stateless functions, thread-safe.
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
  // By tag: simple_value, or a tensor without dimensions (float or double) as TensorFlow 2 writes.
  std::vector<std::pair<std::string, double>> scalars;
  std::vector<std::pair<std::string, double>> histograms;  // the number of values of each
  int session_status = 0;                                  // a SessionStatus (event_file_writer.h); 0: none
  std::string checkpoint_path;

  // Returns "7: loss=0.5 accuracy=0.25" or "7: START".
  std::string ToString() const;
};

// Returns all events in a file's bytes, except those that only state the format's version.
std::vector<SummaryEvent> ReadEventFile(std::string_view bytes);

// Passes the events of the file at `path` to `take`, one by one; needs memory for the largest record and a few MB.
// Errors are those of the file system.
[[nodiscard]] absl::Status ReadEventFile(FileSystem& files, const std::string& path,
                                         const std::function<void(const SummaryEvent& event)>& take);

// True if TensorBoard would take the file for an event file, by its name.
bool IsEventFileName(std::string_view name);

// Returns the events of every event file of a directory, in order of the files' names; none if the directory doesn't
// exist.
std::vector<SummaryEvent> ReadEventFiles(FileSystem& files, const std::string& directory);

}  // namespace muster
