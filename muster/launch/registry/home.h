// The folder of all experiments: MUSTER_HOME, ~/.muster unless set. docs/experiments/registry.md describes the layout.
// This class only knows the paths; its users make the folders they need. A plain value.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/registry/experiment_id.h"

namespace muster {

class Home {
 public:
  // Takes the path as it is, whether it exists or not.
  explicit Home(std::string path) : path_(std::move(path)) {}
  // Opens a home for writing: makes the path absolute, and the folder if it is missing. IsWrongConfiguration naming the
  // folder and MUSTER_HOME if it can't be made or written to, or if other users may write there, who could replace what
  // is in it. A folder made here is accessible to its owner only; so is all that muster makes in it, and what an older
  // muster made (KeepOthersOut).
  static absl::StatusOr<Home> Open(const std::string& path, FileSystem& files);
  // Opens a home for reading (Registry::Open works without write permission). Checks nothing if a registry exists;
  // otherwise does the same as Open. Takes rights of others away, too, if this user owns it.
  static absl::StatusOr<Home> OpenToRead(const std::string& path, FileSystem& files);

  const std::string& path() const { return path_; }
  std::string database() const;                           // index.db, where it is kept in the home
  std::string former_database() const;                    // registry.db: of a muster before format 4
  std::string open_folder() const;                        // open/: which experiments haven't ended
  std::string open_marker(int64_t number) const;          // open/4
  std::string experiments() const;                        // experiments/
  std::string far_folder() const;                         // far/: which runs' jobs share no folder with this home
  std::string far_marker(const ExperimentId& id) const;   // far/4, far/4.3
  std::string trees() const;                              // code/: one folder per content hash
  std::string builds() const;                             // builds/: the same, after `install`
  std::string environments() const;                       // environments/: "tensorflow-2.15.0", virtual environments
  std::string held() const;                               // held/: hosts that the user's own commands have got
  std::string folder(const ExperimentId& id) const;       // experiments/4, experiments/4/runs/3
  std::string work(const ExperimentId& id) const;         // folder/work: the tasks' working directory
  std::string logs(const ExperimentId& id) const;         // folder/logs
  std::string output(const ExperimentId& id) const;       // folder/output: OUTPUT_DIR unless the file names another
  std::string host_usage(const ExperimentId& id) const;   // folder/usage.json: of tasks on hosts, while they run
  std::string output_mark(const ExperimentId& id) const;  // folder/output_mark: of the host that has the newest output
  std::string output_elsewhere(const ExperimentId& id) const;  // folder/output_elsewhere: which host alone has it
  std::string experiment_file(int64_t number) const;           // experiments/4/experiment.json: what was asked for
  std::string experiment_lock(int64_t number) const;           // experiments/4/experiment.json.lock: who replaces it
  std::string former_file(int64_t number) const;               // experiments/4/former.json: before the last Restart
  std::string records(const ExperimentId& id) const;           // folder/records: what has happened
  std::string state(const ExperimentId& id) const;             // folder/state.json: what is the case
  std::string refused(const ExperimentId& id) const;           // folder/refused: why the last attempt was taken back
  std::string requests(const ExperimentId& id) const;          // folder/requests: what other machines ask for
  std::string job(const ExperimentId& id) const;               // folder/job: which job of an engine has its supervisor
  std::string job_script(const ExperimentId& id) const;        // folder/job.sh: what was submitted
  std::string job_over(const ExperimentId& id) const;          // folder/job_over: its supervisor has come to an end
  std::string job_waits(const ExperimentId& id) const;         // folder/job_waits: for what, as its script says
  std::string job_notice(const ExperimentId& id) const;        // folder/job_notice: the job's time is nearly over
  std::string handover(const ExperimentId& id) const;          // folder/handover: for the next supervisor in the job
  std::string logged_output(const ExperimentId& id) const;     // folder/logged_output: likewise
  std::string job_output(const ExperimentId& id) const;        // folder/job.out: what its script has written
  std::string other_home(const ExperimentId& id) const;        // folder/other_home: MUSTER_HOME on the job's other side
  std::string lock(const ExperimentId& id) const;              // folder/lock: held by the supervisor
  std::string supervisor_log(const ExperimentId& id) const;    // folder/supervisor.log

 private:
  std::string path_;
};

}  // namespace muster
