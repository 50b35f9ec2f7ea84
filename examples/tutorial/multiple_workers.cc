// The program of docs/tutorial/multiple_workers_ps.md and its two worker pages: a ps and two workers that run together.
#include <muster/muster.h>

#include <iostream>

#include "absl/strings/str_format.h"

int main(int argc, char** argv) {
  // [ps]
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();
  // [/ps]

  // [replica]
  muster::SeedTorch(1 + static_cast<uint64_t>(task.global_id()));  // each worker draws different data
  torch::nn::Linear net(4, 1);
  muster::Replica replica(server, net);
  auto trainer = muster::Synchronous(replica, muster::Sgd({.learning_rate = 0.2}),
                                     {.replicas_to_aggregate = 2, .total_replicas = 2, .elastic = false});
  // [/replica]

  // [session]
  muster::MonitoredTrainingSession session(server, {}, {muster::StopAtStep({.last_step = 100})});
  while (!session.ShouldStop()) {
    double loss = 0;
    session.Run(trainer, [&] {
      auto x = torch::rand({32, 4});
      auto error = torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
      loss = error.item<double>();
      return error;
    });
    if (session.global_step() % 25 == 0)
      std::cout << absl::StrFormat("%s: global step %d, loss %.4f", task.task().ToString(), session.global_step(), loss)
                << "\n"
                << std::flush;
  }
  // [/session]
}
