// The program of README.md's first screen. The tests compile and run it, so that what is shown works.
// [program]
#include <muster/muster.h>

struct NetImpl : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(4, 1))};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);  // TF_CONFIG, --ps_hosts …, or alone
  muster::Server server(task);
  if (task.is_ps()) return server.Join();  // ends automatically when training has ended

  Net net;  // any torch::nn::Module
  muster::Replica replica(server, net, {.placement = muster::Placement::kGreedyBySize});
  auto trainer = muster::Asynchronous(replica, muster::Adam({.learning_rate = 0.01}));

  muster::MonitoredTrainingSession session(server, {.checkpoint_dir = task.model_dir()},
                                           {muster::StopAtStep({.last_step = 1000})});
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      auto x = torch::rand({32, 4});
      return torch::mse_loss(net->layer(x), x.sum(1, /*keepdim=*/true));
    });
}
// [/program]
