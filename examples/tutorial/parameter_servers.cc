// The program of docs/tutorial/parameter_servers.md: where the variables are, and that all tasks share them.
#include <muster/muster.h>

#include <iostream>

struct NetImpl : torch::nn::Module {
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(4, 16))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(16, 1))};
  torch::Tensor forward(const torch::Tensor& x) { return output(torch::relu(hidden(x))); }
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  // [ps]
  if (task.is_ps()) return server.Join();
  // [/ps]
  muster::SeedTorch(1);
  Net net;
  // [where]
  muster::Replica replica(server, net);
  for (const muster::PlacedSlice& slice : replica.placement().slices)
    std::cout << replica.source().variables()[slice.variable].name << " is on ps " << slice.ps << ", " << slice.bytes
              << " bytes"
              << "\n"
              << std::flush;
  // [/where]
  // [train]
  auto trainer = muster::Asynchronous(replica, muster::Momentum({.learning_rate = 0.01}));
  muster::MonitoredTrainingSession session(server, {}, {muster::StopAtStep({.last_step = 500})});
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      auto x = torch::rand({32, 4});
      return torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
    });
  // [/train]
  std::cout << "trained to global step " << session.global_step() << "\n" << std::flush;
}
