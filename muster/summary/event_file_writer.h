// Writes TensorBoard event files of one process: summaries, the model's graph, session marks. Layout:
// docs/summary_format.md. TensorBoard reads one writer per directory reliably (with two it drops events), so a
// directory has one writer at a time: a second one, in this process or another, is refused with the name of the first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/mutex.h"
#include "muster/base/retry_pause.h"
#include "muster/summary/value_histogram.h"

namespace muster {

// The values of TensorFlow's event.proto.
enum class SessionStatus { kStart = 1, kStop = 2, kCheckpoint = 3 };

struct ScalarSummary {
  std::string tag;
  float value = 0;
};

// Thread-safe. A disk that can't be written is no error of the calls that add something, as training must not end
// because of it: a warning says why, what is added meanwhile is lost, and a new file is begun after 5 s, 10 s and so on
// (a cut record hides everything after it in its file). A new file is also begun if somebody deletes the file or its
// directory.
class EventFileWriter {
 public:
  struct Options {
    std::string host;                                    // part of the file's name; empty: the machine's name
    std::string suffix;                                  // after the host; empty: "." and the process id
    absl::Duration flush_interval = absl::Seconds(120);  // checked when something is added
  };

  // Creates the directory and the file events.out.tfevents.<10 digits of seconds>.<host><suffix>, and flushes the
  // version event. Never overwrites an earlier file. `files` and `clock` must outlive it. IsWrongConfiguration: another
  // writer has the directory. Close, the destructor and any end of the process release the directory. On a file system
  // without locks another writer isn't detected. A full disk is no error.
  static absl::StatusOr<std::unique_ptr<EventFileWriter>> Open(FileSystem& files, const Clock& clock,
                                                               const std::string& directory, const Options& options);

  // Without Close, unflushed data is lost.
  ~EventFileWriter() = default;

  // The file that is being written, or was last.
  std::string path() const;

  [[nodiscard]] absl::Status AddScalar(std::string_view tag, float value, int64_t step);
  // Writes several scalars of one step as one event.
  [[nodiscard]] absl::Status AddScalars(std::span<const ScalarSummary> scalars, int64_t step);
  [[nodiscard]] absl::Status AddHistogram(std::string_view tag, const ValueHistogram& histogram, int64_t step);
  // Writes an encoded `Summary` message with any values (summary_values.h); writes nothing if it is empty.
  [[nodiscard]] absl::Status AddSummary(std::string_view summary, int64_t step);
  // Writes an encoded `GraphDef` (graph_def.h); TensorBoard shows the last one of a directory.
  [[nodiscard]] absl::Status AddGraph(std::string_view graph_def, int64_t step);
  // kStart: from this step on everything written before is out of date. `checkpoint_path` is for kCheckpoint; `message`
  // is free text.
  [[nodiscard]] absl::Status AddSessionLog(SessionStatus status, int64_t step, std::string_view checkpoint_path = {},
                                           std::string_view message = {});
  // Makes everything added so far visible to TensorBoard.
  [[nodiscard]] absl::Status Flush();
  // Flushes and ends the file, and releases the directory. Afterwards every call but Close is FailedPrecondition.
  [[nodiscard]] absl::Status Close();

 private:
  EventFileWriter(FileSystem& files, const Clock& clock, std::string directory, Options options);
  // Takes the directory, and begins a file in it.
  [[nodiscard]] absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status Append(std::string_view event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins another file if this one was deleted, or couldn't be written and it is time to try again.
  void BeginAgainIfDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpFile(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushLocked(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status Add(int field, std::string_view message, int64_t step);

  FileSystem& files_;
  const Clock& clock_;
  const std::string directory_;
  const Options options_;

  mutable Mutex mutex_;
  std::string path_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FileLock> lock_ ABSL_GUARDED_BY(mutex_);      // of the directory
  std::unique_ptr<WritableFile> file_ ABSL_GUARDED_BY(mutex_);  // null: it couldn't be written, or is closed
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  RetryPause pause_ ABSL_GUARDED_BY(mutex_);
  absl::Time retry_at_ ABSL_GUARDED_BY(mutex_);  // without a file
  absl::Time look_at_ ABSL_GUARDED_BY(mutex_);   // when to look whether the file is still there
  absl::Time last_flush_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster
