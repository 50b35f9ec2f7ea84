#include "muster/launch/task_run/unheard_hosts.h"

#include <gmock/gmock.h>

#include <string>

namespace muster::unheard_hosts_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

const TaskId kPs{kPsJob, 0}, kFirst{kWorkerJob, 0}, kSecond{kWorkerJob, 1};

std::string NameOf(const TaskId& task) { return task.ToString(); }

TEST(UnheardHosts, EachIsNamedOnceWithItsTasks) {
  const auto awaited = [](const TaskId& task) {
    return task == kPs ? std::string() : std::string("h2, which is lost soon");
  };
  EXPECT_THAT(UnheardHostLines({kPs, kFirst, kSecond}, awaited, NameOf),
              ElementsAre("waiting for h2, which is lost soon; until then worker:0, worker:1 may go on there. Another "
                          "interrupt kills the other tasks and waits no less for it"));
}

TEST(UnheardHosts, NothingIsSaidWhereAllAreHeard) {
  EXPECT_THAT(UnheardHostLines(
                  {kPs}, [](const TaskId&) { return std::string(); }, NameOf),
              IsEmpty());
}

}  // namespace
}  // namespace muster::unheard_hosts_test
