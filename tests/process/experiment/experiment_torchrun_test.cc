// Scripts of torch.distributed that know nothing of muster find the variables with which torchrun would start them.
#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/process/testing/engines.h"
#include "tests/process/testing/python_with.h"

namespace muster::experiment_torchrun_test {
namespace {

using ::testing::Contains;

constexpr char kTorchScript[] = R"(import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    x = torch.randn(32, 4)
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has trained to a loss below 0.1: {bool(loss < 0.1)}")
dist.destroy_process_group()
)";

class ExperimentTorchrun : public OnEveryEngine {};

INSTANTIATE_TEST_SUITE_P(, ExperimentTorchrun, EveryEngine(), EngineName);

TEST_P(ExperimentTorchrun, TasksFindTorchrunsVariables) {
  WriteExperiment(
      "torchrun: {workers: 2, processes: 2}\n"
      "run: echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR:$MASTER_PORT");
  const std::string shown = Out({"train"});
  std::set<std::string> addresses;
  const std::vector<std::string> ranks = {"0 0 4 2 0", "1 1 4 2 0", "2 0 4 2 1", "3 1 4 2 1"};
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::vector<std::string> lines = LinesOf(shown, absl::StrCat("1.worker.", i + 1));
    ASSERT_EQ(lines.size(), 3) << shown;
    const size_t space = lines[1].rfind(' ');
    EXPECT_EQ(lines[1].substr(0, space), ranks[i]);
    addresses.insert(lines[1].substr(space + 1));
  }
  EXPECT_EQ(addresses.size(), 1);
  const char* const first = takes_named_hosts() ? "10\\.77\\.0\\.11:[1-9][0-9]*"
                            : on_hosts()        ? "10\\.77\\.0\\.[1-9][0-9]*:[1-9][0-9]*"
                                                : "127\\.0\\.0\\.1:[1-9][0-9]*";
  EXPECT_THAT(*addresses.begin(), testing::MatchesRegex(first));
}

TEST_P(ExperimentTorchrun, TheFirstWorkerDecidesUnderTorchrun) {
  WriteExperiment("torchrun: {workers: 2}\nrun: '[ $RANK = 0 ] && exit 5; while :; do sleep 1000; done'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 5);
  EXPECT_EQ(StatesOf(said.out, "1.worker.2").back(), "KILLED");
}

TEST_P(ExperimentTorchrun, AScriptOfTorchDistributedRunsAsItIs) {
  const std::string folder = PythonFolderWith("torch.distributed");
  if (folder.empty())
    GTEST_SKIP() << NoTestBecause("no python with torch in .venv or build/peers; ./dev setup installs it");
  Write("train.py", kTorchScript);
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: pytorch\n  torchrun: {workers: 1, processes: 2}\n"
        "  run: python train.py\n" +
            PythonFirst(folder));
  const std::string shown = Out({"train"});
  for (const std::string rank : {"0", "1"}) {
    const std::string name = absl::StrCat("1.worker.", std::stoi(rank) + 1);
    EXPECT_THAT(LinesOf(shown, name), Contains("rank " + rank + " of 2 has trained to a loss below 0.1: True"));
    EXPECT_EQ(StatesOf(shown, name).back(), "FINISHED");
  }
}

}  // namespace
}  // namespace muster::experiment_torchrun_test
