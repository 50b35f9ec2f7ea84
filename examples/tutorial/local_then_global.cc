// The program of docs/tutorial/local_then_global.md: five steps on the worker's own variables, then one push.
#include <muster/muster.h>

#include <iostream>

#include "absl/strings/str_format.h"

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();

  // [local]
  muster::SeedTorch(1);
  torch::nn::Linear net(4, 1);                               // local: this worker's own
  torch::optim::Adagrad optimizer(net->parameters(), 0.05);  // also local, and unknown to all others
  muster::Replica replica(server, net);                      // global: a copy of each variable on the ps
  muster::LocalVariables local(replica, {.rule = muster::PlainAdd()});
  // [/local]

  // [train]
  // Plain torch, on the worker's own variables.
  const auto train_locally = [&] {
    torch::Tensor loss;
    for (int step = 0; step < 5; ++step) {
      auto x = torch::rand({32, 4});
      optimizer.zero_grad();
      loss = torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
      loss.backward();
      optimizer.step();
    }
    return loss;
  };
  // [/train]

  muster::MonitoredTrainingSession session(server, {}, {muster::StopAtStep({.last_step = 40})});
  // [alone]
  const std::string here = server.Devices().front();
  const int ps = replica.placement().slices.front().ps;
  const std::string there = task.distributed() ? absl::StrFormat("/job:ps/task:%d", ps) : here;
  const auto mean = [&] { return net->weight.mean().item<double>(); };
  const auto show = [&](const char* when) {
    const double own = mean();
    double global = 0;
    session.Fetch([&] { global = mean(); });
    std::cout << absl::StrFormat("%-17s local %.3f on %s, global %.3f on %s\n", when, own, here, global, there);
  };
  show("at first");
  train_locally();
  show("five local steps");
  // [/alone]

  // [session]
  while (!session.ShouldStop())
    session.Run(local, [&] {
      local.PullGlobal();  // global → local
      const torch::Tensor loss = train_locally();
      const auto before = local.Global("weight").mean().item<double>();
      const muster::LocalPush push = local.PushDelta({.minibatches = 5});  // global += local - what was pulled
      if (push.global_step % 10 == 0)
        std::cout << absl::StrFormat("push %d: the mean global weight was %.3f, locally %.3f, and is %.3f\n",
                                     push.global_step, before, mean(), local.Global("weight").mean().item<double>())
                  << std::flush;
      return loss;
    });
  // [/session]
}
