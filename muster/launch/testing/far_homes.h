// For tests of experiments without a shared folder: a home of the submitter and one of the job, with an engine between
// them that a test plays. What the job answers is made by the code that runs in jobs; faults are scripted by count.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/far_home/parts_answer.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/task_log/task_log.h"
#include "muster/launch/testing/played_job_engine.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster {

class FarHomesFixture : public RegistryFixture {
 protected:
  static constexpr char kJob[] = "muster-1";

  FarHomesFixture() {
    played_.ask = [this](const std::string& id, const std::vector<std::string>& arguments, const std::string& input) {
      return Answer(id, arguments, input);
    };
    played_.news[kJob] = {.phase = JobPhase::kRuns};
  }

  // Creates an experiment here whose supervisor is to be in the job.
  ExperimentId Submit() {
    scratch_.Write("project/train.py", "print(1)\n");
    scratch_.Write("project/run.sh", "#!/bin/sh\n");
    EXPECT_EQ(chmod((scratch_ / "project/run.sh").c_str(), 0700), 0);
    EXPECT_EQ(symlink("train.py", (scratch_ / "project/link.py").c_str()), 0);
    NewExperiment experiment = Single();
    const auto files = ListProject(scratch_ / "project", {});
    experiment.tree = StoreTree(scratch_ / "project", *files, home_.trees(), [](int64_t) {}).value();
    tree_ = experiment.tree;
    const ExperimentId id{.number = Create(*near_, experiment)};
    EXPECT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id)).ok());
    EXPECT_TRUE(WriteJobFile(home_.job(id), {.engine = "slurm", .id = kJob, .host = MachineId::This().host}).ok());
    return id;
  }

  // The registry of the job's supervisor, once it has the experiment.
  Registry& Far() {
    if (far_registry_ == nullptr) far_registry_ = Registry::Open(far_, clock_, ToRead::kOpen).value();
    return *far_registry_;
  }
  void BringFar(const ExperimentId& id, RunState state) {
    RunRecord run = Get(Far(), id);
    run.output_dir = far_.output(id);
    run.run_id = "abcd";
    const bool is_new = run.state == RunState::kCreated;
    for (const RunState step : {RunState::kPending, RunState::kStarting, RunState::kRunning, state}) {
      if (run.state == state || (!is_new && step != state)) continue;
      run.state = step;
      ASSERT_TRUE(Far().SetRun(run).ok());
    }
  }
  void LogFar(const ExperimentId& id, const std::string& task, std::string_view text) const {
    TaskLog log({.folder = JoinPath(far_.logs(id), task)});
    log.Add(clock_.Now(), LogKind::kStdout, text);
  }
  // As the supervisor does when it has come to an end by itself.
  void EndFar(const ExperimentId& id) const {
    far_scratch_.Write(absl::StrCat("experiments/", id.ToString(), "/job_over"), "");
  }

  std::string Near(const std::string& file) const { return scratch_.Read("experiments/1/" + file); }
  std::string FarText(const std::string& file) const { return far_scratch_.Read("experiments/1/" + file); }

  absl::StatusOr<std::string> Answer(const std::string& id, const std::vector<std::string>& arguments,
                                     const std::string& input) {
    ++asked_;
    if (arguments.empty() || id != kJob) return absl::UnavailableError("no such job runs");
    EXPECT_EQ(arguments.size(), 3U);
    EXPECT_EQ(arguments[0], "home");
    if (!silence_.ok()) return silence_;
    verbs_.push_back(arguments[1]);
    if (!hostile_.empty()) return hostile_;
    std::string answer = AnswerFar(far_, arguments[1], arguments[2], input);
    // As if the first answer had been lost on the way.
    if (twice_ > 0) {
      --twice_;
      answer = AnswerFar(far_, arguments[1], arguments[2], input);
    }
    if (cut_ > 0) {
      --cut_;
      answer.resize(answer.size() / 2);
    }
    return answer;
  }

  const ScratchFolder far_scratch_;
  const Home far_{far_scratch_.path()};
  PlayedJobs played_;
  PlayedJobEngine engine_{played_};
  const std::unique_ptr<Registry> near_ = Open();
  std::unique_ptr<Registry> far_registry_;
  std::string tree_;
  int asked_ = 0;
  int cut_ = 0;           // so many answers come cut
  int twice_ = 0;         // so many questions come twice
  std::string hostile_;   // what the job answers instead
  absl::Status silence_;  // why it can't be asked
  std::vector<std::string> verbs_;
};

}  // namespace muster
