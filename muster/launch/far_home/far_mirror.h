// The submitter's side of fetching (docs/far_homes.md): brings what is new in the job's folder of a run into the folder
// of the same run here, and passes on what is asked of the supervisor. Whatever the job says is checked. Processes take
// turns by a lock that a death releases. Blocking; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/run_lock.h"

namespace muster {

struct FarNews {
  bool fresh = false;  // somebody else has just fetched: nothing was asked, and the others say nothing
  bool over = false;   // the supervisor doesn't live any more
  bool more = false;   // time was over before all was here
  std::vector<std::string> problems = {};  // what can't be fetched, and why
};

class FarMirror {
 public:
  struct Options {
    absl::Duration patience = absl::Seconds(3);  // for others that fetch; and after it no more questions are asked
    absl::Duration fresh = absl::Seconds(1);     // what was fetched within this isn't asked for again
    int64_t log_bytes = int64_t{256} << 20;      // of each task; older files are removed
    bool collected = false;                      // says that all has been fetched, so that the job may end
  };
  // Borrows all but `id` and `job`, which must outlive it.
  FarMirror(const Home& home, JobEngine& engine, const Clock& clock, const ExperimentId& id, std::string job)
      : home_(home), engine_(engine), clock_(clock), id_(id), job_(std::move(job)) {}

  // Fetches what is new. Unavailable: another process fetches for longer than the patience, or the run has left the
  // job. DataLoss: an answer has
  // what it may not have; nothing is written of its records then, nor of what comes after them. Other errors are those
  // of AskFar and of writing the files.
  absl::StatusOr<FarNews> Refresh(const Options& options);

 private:
  // What has come of the logs since the first page of them.
  struct Walk {
    std::string after = "";  // the last task of the page before; "": this is the first
    bool whole = true;       // all pages before have come to their ends, which stood behind the run's end
    bool ended = false;      // the run has ended, and its end hasn't come
    bool cut = false;        // the last answer hasn't all of its page
    bool more = false;       // and another may bring it
  };
  absl::StatusOr<FarNews> Ask(const Options& options);
  // Asks for all pages, and each again until all of it is here or it is `until`.
  absl::Status AskForPages(const Options& options, absl::Time until, FarNews& news);
  // Returns the last task of the page; "": it is the last page.
  absl::StatusOr<std::string> AskForPage(const Options& options, Walk& walk, FarNews& news);
  absl::Status Take(const FarMessage& answer, const Options& options, Walk& walk, FarNews& news);

  const Home& home_;
  JobEngine& engine_;
  const Clock& clock_;
  const ExperimentId id_;
  const std::string job_;
};

// Keeps others from fetching while the result lives, so that this process alone writes the run's records here. Blocks.
// Unavailable: another fetches for longer than the patience.
absl::StatusOr<RunLock> HoldFetching(const Home& home, const ExperimentId& id, absl::Duration patience);

// Returns how long ago something was fetched; nullopt: never.
std::optional<absl::Duration> SinceFetched(const Home& home, const ExperimentId& id);

}  // namespace muster
