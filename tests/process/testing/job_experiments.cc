#include "tests/process/testing/job_experiments.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace muster {
void JobExperiments::WriteCluster(const std::string& distributed, const std::string& script) {
  Write("muster.yml", absl::StrCat("project: toy\ntrain:\n  framework: tensorflow\n  tensorflow: {distributed: ",
                                   distributed, "}\n  run: '", script, "'\n"));
}

std::string JobExperiments::JobOf(const std::string& id) {
  return Json({"status", id})["job"]["id"].get<std::string>();
}

void JobExperiments::AwaitStatus(const std::string& id, const std::string& text) {
  std::string shown;
  for (const absl::Time give_up = absl::Now() + HangsAfter(); !absl::StrContains(shown, text) && absl::Now() < give_up;)
    shown = Muster({"status", id}).out;
  EXPECT_THAT(shown, ::testing::HasSubstr(text));
}

void JobExperiments::AwaitHandover() {
  const std::string handover = home() + "/experiments/1/handover";
  const absl::Time give_up = absl::Now() + HangsAfter();
  while (!std::filesystem::exists(handover) && absl::Now() < give_up) {
  }
  ASSERT_TRUE(std::filesystem::exists(handover)) << Read("experiments/1/job.out");
}

void JobExperiments::AwaitTakeOvers(int count) {
  std::string said;
  int taken = 0;
  for (const absl::Time give_up = absl::Now() + HangsAfter(); taken < count && absl::Now() < give_up;) {
    said = Read("experiments/1/logs/experiment/000001.log");
    const std::vector<std::string> parts = absl::StrSplit(said, "another one goes on with its ");
    taken = static_cast<int>(parts.size()) - 1;
  }
  EXPECT_EQ(taken, count) << said << Read("experiments/1/job.out");
}

int KillProcessesOn(const SimulatedHosts& hosts, const std::string& host, const std::string& text,
                    const std::vector<std::string>& spared) {
  int killed = 0;
  for (const SimulatedHosts::Running& running : hosts.ProcessesOf(host)) {
    const bool is_spared = std::any_of(spared.begin(), spared.end(), [&running](const std::string& word) {
      return absl::StrContains(running.words, word);
    });
    if (absl::StrContains(running.words, text) && !is_spared) killed += kill(running.pid, SIGKILL) == 0 ? 1 : 0;
  }
  return killed;
}

}  // namespace muster
