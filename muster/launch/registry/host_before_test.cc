#include "muster/launch/registry/host_before.h"

#include <gmock/gmock.h>

#include "muster/launch/testing/registry_fixture.h"

namespace muster::host_before_test {
namespace {

using HostBeforeTest = RegistryFixture;

// An attempt that ended before its tasks ran says nothing of hosts.
TEST_F(HostBeforeTest, TheHostOfATaskIsThatOfTheLastAttemptInWhichItRan) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  const TaskId worker{kWorkerJob, 0};
  EXPECT_EQ(HostBefore(home_, id, 1, worker), "");
  for (const char* host : {"h1", "h2", ""}) {
    const bool runs = host[0] != '\0';
    Bring(*registry, id, runs ? RunState::kRunning : RunState::kPending);
    const RunState state = runs ? RunState::kRunning : RunState::kPending;
    ASSERT_TRUE(registry->SetTasks(id, {{.task = worker, .state = state, .host = runs ? host : "h9"}}).ok());
    Bring(*registry, id, RunState::kFailed);
    ASSERT_TRUE(registry->Restart(id, Single()).ok());
    EXPECT_EQ(HostBefore(home_, id, Get(*registry, id).attempt, worker), runs ? host : "h2");
  }
  EXPECT_EQ(HostBefore(home_, id, 9, {kWorkerJob, 1}), "");
}

}  // namespace
}  // namespace muster::host_before_test
