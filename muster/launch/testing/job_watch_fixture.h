// For tests of JobWatch: experiments whose supervisors are in jobs of an engine that the test plays.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/jobs/job_watch.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/testing/played_job_engine.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster {

class JobWatchFixture : public RegistryFixture {
 protected:
  JobWatchFixture() { engine_.terms.max_requeues = 2; }
  // Creates an experiment whose supervisor is in that job.
  ExperimentId InJob(const JobOfRun& job) {
    const ExperimentId id{.number = Create(*registry_, Single())};
    Put(id, job);
    return id;
  }
  void Put(const ExperimentId& id, JobOfRun job) {
    if (job.host.empty()) job.host = MachineId::This().host;
    ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id)).ok());
    ASSERT_TRUE(WriteJobFile(home_.job(id), job).ok());
  }
  std::vector<std::string> Look() { return watch_.Look(); }

  PlayedJobs engine_;
  const std::unique_ptr<Registry> registry_ = Open();
  JobWatch watch_{home_, *registry_,
                  [this](const std::string& name, const std::string&) -> std::unique_ptr<JobEngine> {
                    return name == "slurm" ? std::make_unique<PlayedJobEngine>(engine_) : nullptr;
                  },
                  clock_};
};

}  // namespace muster
