#include "tests/process/testing/by_hand.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/testing/built_at.h"

namespace muster {

ByHand::ByHand(int ps, int workers, bool chief)
    : ports_(*FreePorts::Reserve(ps + workers + (chief ? 1 : 0))),
      first_worker_((chief ? 1 : 0)),
      ps_(ps),
      held_(static_cast<size_t>(ps + workers) + (chief ? 1 : 0), true) {
  std::vector<TaskId> tasks;
  for (int i = 0; i < ps; ++i) tasks.push_back({kPsJob, i});
  if (chief) tasks.push_back({kChiefJob, 0});
  for (int i = 0; i < workers; ++i) tasks.push_back({kWorkerJob, i});
  for (size_t i = 0; i < tasks.size(); ++i) {
    addresses_.push_back(absl::StrCat("127.0.0.1:", ports_.port(i)));
    EXPECT_TRUE(cluster_.AddTask(tasks[i], addresses_[i]).ok());
  }
}

void ByHand::ReleasePort(const std::string& job, int index) {
  if (ps_ > 0 && job != kPsJob) return;
  const auto i = static_cast<size_t>(job == kWorkerJob ? first_worker_ + index : index);
  if (i >= held_.size() || !held_[i]) return;
  ports_.Release(i);
  held_[i] = false;
}

std::vector<std::string> ByHand::Flags(const std::string& job, int index) {
  ReleasePort(job, index);
  std::vector<std::string> flags;
  for (const std::string& its_job : cluster_.jobs()) {
    flags.push_back(absl::StrCat("--", its_job, "_hosts=", absl::StrJoin(*cluster_.DenseList(its_job), ",")));
  }
  flags.push_back(absl::StrCat("--job_name=", job));
  flags.push_back(absl::StrCat("--task_index=", index));
  return flags;
}

std::string ByHand::TfConfig(const std::string& job, int index, const std::string& model_dir) {
  ReleasePort(job, index);
  return absl::StrCat("{\"cluster\": ", cluster_.ToJson(), ", \"task\": {\"type\": \"", job, "\", \"index\": ", index,
                      "}", model_dir.empty() ? "" : ", \"model_dir\": \"" + model_dir + "\"", "}");
}

ServingPs::ServingPs(ByHand& cluster, int index, const std::vector<std::string>& flags, const ProcessOptions& options)
    : Process(Joined({BinFolder() + "/muster", "ps"}, Joined(cluster.Flags("ps", index), flags)), options) {
  WaitForErr("serves at");
}

std::vector<std::string> Joined(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace muster
