// A worker that itself updates rows of a table in the memory of two real ps is killed with SIGKILL at every point of a
// push, one after the other. After each death another process reads the table: every stripe has all or nothing of what
// the push changes there. The next life's pushes then count as if nothing had died.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "muster/store/arena/arena_layout.h"
#include "muster/store/client/row_client.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"

namespace muster::direct_rows_kill_test {
namespace {

constexpr int kPs = 2;
// Four stripes per ps; some rows cross two.
constexpr int64_t kRows = 1000;
constexpr int64_t kWidth = 100;
// Rows of the first, the last and the middle stripes; 327 (number 163 on its ps) and 654 (327) cross two stripes.
const std::vector<int64_t> kPushed = {0, 1, 5, 327, 328, 500, 654, 655, 998, 999, 5};

const std::vector<VariableSpec> kVariables = {{.name = "table", .shape = {kRows, kWidth}, .kind = VariableKind::kRows}};

// A gradient of kPushed that, by SGD with rate 1, adds one for each time a row is named.
const std::vector<float> kGradients(kPushed.size() * kWidth, -1);

// Kills this process at the point of that number; counts the points.
class KillingProbe final : public ArenaProbe {
 public:
  void At(ArenaPoint) override {
    if (armed && points++ == die_at) raise(SIGKILL);
  }
  bool Has(PlantedBug) const override { return false; }
  bool dying() const override { return false; }

  bool armed = false;
  int die_at = -1;
  int points = 0;
};

// A worker's process: its connections and its access to the table.
struct Worker {
  Worker(const std::vector<std::string>& ps, int index, uint64_t life, ApplyChoice apply)
      : client(transport, ps,
               {.task = absl::StrCat("worker:", index),
                .where = absl::StrCat("life ", life),
                .incarnation = life,
                .apply = apply,
                .probe = &probe}) {}
  absl::Status Start(bool chief) {
    absl::Status status = client.Join(chief);
    client.Bind({kVariables,
                 *PlaceVariables(kVariables, kPs, Placement::kRoundRobin, {}),
                 RuleSpec{.kind = RuleKind::kSgd, .learning_rate = 1},
                 {{}}});
    if (status.ok() && chief) status = client.Initialize(0, 0, nullptr);
    return status.ok() ? client.AwaitReady(absl::InfiniteFuture()).status() : status;
  }
  bool Push() {
    return rows.Push("table", {kPushed, DType::kFloat32, AsBytes(kGradients.data(), kGradients.size())}).ok();
  }
  std::vector<float> Table() {
    std::vector<int64_t> all(kRows);
    for (int64_t row = 0; row < kRows; ++row) all[row] = row;
    std::vector<float> values(kRows * kWidth);
    EXPECT_TRUE(rows.Gather("table", {all, DType::kFloat32, AsMutableBytes(values.data(), values.size())}).ok());
    return values;
  }

  KillingProbe probe;
  TcpEventLoop loop;
  TcpTransport transport{loop, {}};
  StoreClient client;
  RowClient rows{client};
};

// Runs a whole life of worker 1; returns its end in the form of waitpid.
int Live(const std::vector<std::string>& ps, uint64_t life, int die_at) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Worker worker(ps, 1, life, ApplyChoice::kDirect);
    if (!worker.Start(false).ok()) _exit(2);
    worker.probe.die_at = die_at;
    worker.probe.armed = true;
    _exit(worker.Push() ? 0 : 3);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

// Returns, by stripe (ps, number), how many of its elements have what kPushed adds, and how many don't.
std::map<std::pair<int64_t, int64_t>, std::pair<int, int>> WhatStripesHave(const std::vector<float>& before,
                                                                           const std::vector<float>& after) {
  std::map<std::pair<int64_t, int64_t>, std::pair<int, int>> stripes;
  for (int64_t row = 0; row < kRows; ++row) {
    const auto times = static_cast<float>(std::count(kPushed.begin(), kPushed.end(), row));
    for (int64_t i = row * kWidth; i < (row + 1) * kWidth; ++i) {
      const float change = after[i] - before[i];
      EXPECT_TRUE(change == 0 || change == times) << "element " << i << " of row " << row << " by " << change;
      if (times == 0) continue;
      auto& [has, lacks] = stripes[{row % kPs, (row / kPs * kWidth + i % kWidth) / kStripeElements}];
      ++(change == times ? has : lacks);
    }
  }
  return stripes;
}

class DirectRowsKillTest : public ::testing::Test {
 protected:
  DirectRowsKillTest() {
    for (int i = 0; i < kPs; ++i) {
      ps_.push_back(std::make_unique<Process>(Joined({BinFolder() + "/muster", "ps"}, hand_.Flags("ps", i))));
      addresses_.push_back(hand_.ps_address(i));
    }
  }

  const LeftBehind left_behind_;
  ByHand hand_{kPs, 2};
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Process>> ps_;
};

TEST_F(DirectRowsKillTest, EveryStripeHasAPushOrHasNot) {
  Worker chief(addresses_, 0, 1, ApplyChoice::kServer);
  ASSERT_EQ(chief.Start(true), absl::OkStatus());
  std::vector<float> before = chief.Table();
  int deaths = 0, in_the_middle = 0;
  for (;; ++deaths) {
    const int status = Live(addresses_, 100 + deaths, deaths);
    const std::vector<float> after = chief.Table();
    int whole = 0, none = 0;
    const auto stripes = WhatStripesHave(before, after);
    EXPECT_EQ(stripes.size(), 8u);
    for (const auto& [stripe, elements] : stripes) {
      EXPECT_TRUE(elements.first == 0 || elements.second == 0)
          << "stripe " << stripe.second << " of ps " << stripe.first << " has half of the push that died at point "
          << deaths;
      ++(elements.second == 0 ? whole : none);
    }
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(none, 0) << "a push reported as done must be whole";
      break;
    }
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    in_the_middle += whole > 0 && none > 0;
    before = after;
  }
  EXPECT_GT(deaths, 80);
  EXPECT_GT(in_the_middle, 40);
  // One more life, which isn't killed.
  before = chief.Table();
  EXPECT_EQ(Live(addresses_, 100 + ++deaths, /*die_at=*/-1), 0);
  for (const auto& [stripe, elements] : WhatStripesHave(before, chief.Table())) EXPECT_EQ(elements.second, 0);
  EXPECT_EQ(chief.client.Done(), absl::OkStatus());
}

}  // namespace
}  // namespace muster::direct_rows_kill_test
