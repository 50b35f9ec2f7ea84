#include "apps/muster/experiment/missing_supervisor.h"

#include "absl/strings/str_cat.h"
#include "apps/muster/experiment/experiment_command.h"
#include "muster/base/files/file_system.h"

namespace muster {

std::string MissingSupervisorText(const Home& home, const ExperimentId& id, bool in_job) {
  const std::string whose = absl::StrCat("experiment ", ShownId(id), ": ");
  const std::string log = home.supervisor_log(id);
  if (PosixFileSystem().Exists(log)) return absl::StrCat(whose, "its supervisor doesn't start; ", log, " may say why");
  return absl::StrCat(whose, in_job
                                 ? "its job is still being submitted by `muster train`: try again once that has ended"
                                 : "its supervisor doesn't start: the `muster train` that is to start it still runs");
}

}  // namespace muster
