// The program of docs/tutorial/three_steps.md.
// [program]
#include <muster/muster.h>

#include <cstdio>

struct NetImpl : torch::nn::Module {
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(4, 16))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(16, 1))};
  torch::Tensor forward(const torch::Tensor& x) { return output(torch::relu(hidden(x))); }
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  // 1. Cluster and server: which tasks there are, and which of them this process is.
  // [cluster]
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();
  // [/cluster]

  // 2. Placement: the variables go to the parameter servers, the computation to this worker.
  // [placement]
  muster::SeedTorch(1 + static_cast<uint64_t>(task.global_id()));
  Net net;
  muster::Replica replica(server, net, {.placement = muster::Placement::kRoundRobin});
  auto trainer = muster::Asynchronous(replica, muster::Adam({.learning_rate = 0.01}));
  // [/placement]

  // 3. Session: it initialises or restores the model, and runs steps between its hooks.
  // [session]
  muster::MonitoredTrainingSession session(server, {.checkpoint_dir = task.model_dir()},
                                           {muster::StopAtStep({.last_step = 2000})});
  double loss = 0;
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      auto x = torch::rand({32, 4});
      auto error = torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
      loss = error.item<double>();
      return error;
    });
  std::printf("%s: the last loss is %.4f\n", task.task().ToString().c_str(), loss);
  // [/session]
}
// [/program]
