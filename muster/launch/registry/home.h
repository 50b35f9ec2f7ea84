// Where experiments are kept: MUSTER_HOME, ~/.muster unless set. docs/experiments/registry.md has the layout. Only
// paths here: who needs a folder makes it. A plain value.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/base/file_system.h"
#include "muster/launch/registry/experiment_id.h"

namespace muster {

class Home {
 public:
  // As it is, whether it is there or not.
  explicit Home(std::string path) : path_(std::move(path)) {}
  // For who writes: made absolute, and made if it isn't there. IsWrongConfiguration naming the folder and MUSTER_HOME
  // if it can't be made or written to. One that is made here is its owner's alone: the registry has environments.
  static absl::StatusOr<Home> Open(const std::string& path, FileSystem& files);
  // For who only reads (Registry::Open can, where it may not write): where there is a registry nothing is tried;
  // otherwise as Open.
  static absl::StatusOr<Home> OpenToRead(const std::string& path, FileSystem& files);

  const std::string& path() const { return path_; }
  std::string database() const;                              // registry.db
  std::string trees() const;                                 // code/: a folder a content hash
  std::string builds() const;                                // builds/: likewise, what install made of it
  std::string environments() const;                          // environments/: "tensorflow-2.15.0", virtual environments
  std::string folder(const ExperimentId& id) const;          // experiments/4, experiments/4/runs/3
  std::string work(const ExperimentId& id) const;            // folder/work: the tasks' working directory
  std::string logs(const ExperimentId& id) const;            // folder/logs
  std::string output(const ExperimentId& id) const;          // folder/output: OUTPUT_DIR unless the file says another
  std::string lock(const ExperimentId& id) const;            // folder/lock: held by whoever supervises it
  std::string supervisor_log(const ExperimentId& id) const;  // folder/supervisor.log

 private:
  std::string path_;
};

}  // namespace muster
