// The program of docs/tutorial/multiple_workers_ps.md and its two worker pages: a variable that each worker has and the
// ps has, and what an update of the one does to the other.
#include <muster/muster.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "absl/strings/str_format.h"

namespace {

// [net]
struct NetImpl : torch::nn::Module {
  torch::Tensor a{register_parameter("a", torch::zeros({1}))};
};
TORCH_MODULE(Net);
// [/net]

// [local]
torch::Tensor Loss(const Net& net, const torch::Tensor& goal) { return (net->a - goal).abs().sum(); }

// Plain torch: no session, no ps.
void UpdateLocally(int times, Net& net, const torch::Tensor& goal) {
  torch::optim::SGD optimizer(net->parameters(), 1.0);
  for (int i = 0; i < times; ++i) {
    optimizer.zero_grad();
    Loss(net, goal).backward();
    optimizer.step();  // a ← a + 1, as long as a < 100
  }
}
// [/local]

// [show]
void Print(const char* after, float local, float global) {
  std::cout << absl::StrFormat("%-34s %9.0f %9.0f", after, local, global) << "\n" << std::flush;
}

// Prints the worker's own a, and the one that the ps holds now.
void Show(const char* after, muster::MonitoredTrainingSession& session, const Net& net) {
  const auto local = net->a.item<float>();
  float global = 0;
  session.Fetch([&] { global = net->a.item<float>(); });
  Print(after, local, global);
}
// [/show]

}  // namespace

int main(int argc, char** argv) {
  // [ps]
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();
  // [/ps]

  // [variables]
  Net net;                                                                       // local: on this worker's device
  muster::Replica replica(server, net, {.devices = {{"a", "/job:ps/task:0"}}});  // global: on the ps
  muster::LocalVariables local(replica, {.rule = muster::PlainAdd()});
  // [/variables]

  // [session]
  const bool first = task.task().index == 0;
  muster::MonitoredTrainingSession session(server, {}, {muster::GlobalStepWaiter(first ? 0 : 1)});
  // [/session]

  // [operations]
  const torch::Tensor goal = torch::full({1}, 100.0, replica.device());
  const auto pull = [&] { return local.PullGlobal(), Loss(net, goal); };
  const auto push = [&] { return local.PushDelta(), Loss(net, goal); };
  // [/operations]

  std::cout << absl::StrFormat("local a on %s, global a on /job:ps/task:%d\n", server.Devices().front(),
                               replica.placement().slices.front().ps)
            << absl::StrFormat("%-34s %9s %9s\n", task.task().ToString() + ", after", "local a", "global a");
  if (first) {
    // [worker0]
    session.Run(local, pull);
    Show("PullGlobal", session, net);
    UpdateLocally(2, net, goal);
    Show("two local updates", session, net);
    session.Run(local, push);
    Print("PushDelta", net->a.item<float>(), local.Global("a").item<float>());
    // [/worker0]
    // [look]
    while (session.global_step() < 2) {  // until worker 1 has pushed
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      session.Fetch([] {});
    }
    Show("worker 1's push", session, net);
    session.Run(local, pull);
    Show("PullGlobal", session, net);
    // [/look]
  } else {
    // [worker1]
    session.Run(local, pull);
    Show("PullGlobal", session, net);
    UpdateLocally(3, net, goal);
    Show("three local updates", session, net);
    session.Run(local, push);
    Show("PushDelta", session, net);
    // [/worker1]
  }
}
