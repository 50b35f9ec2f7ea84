// A model with an embedding of a million rows that the parameter servers hold; README.md shows the net. Its task is
// made up: to learn which ids are odd, from batches that say only how many of their eight are.
#include <muster/muster.h>

// [net]
struct NetImpl : torch::nn::Module {
  muster::Embedding words{register_module("words", muster::Embedding({.rows = 1'000'000, .dimension = 16}))};
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(16, 1))};

  // ids: int64 [batch, some] -> [batch, 1]. Looks up each row of this batch once.
  torch::Tensor forward(const torch::Tensor& ids) { return layer(words(ids).mean(1)); }
};
TORCH_MODULE(Net);
// [/net]

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();

  Net net;
  muster::Replica replica(server, net);
  auto trainer = muster::Asynchronous(replica, muster::Adagrad({.learning_rate = 0.5}));

  muster::MonitoredTrainingSession session(server, {.checkpoint_dir = task.model_dir()},
                                           {muster::StopAtStep({.last_step = 1000})});
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      // Small numbers are frequent, like common words: the fourth power of a uniform distribution.
      auto ids = (torch::rand({256, 8}).pow(4) * 1e6).to(torch::kInt64);
      return torch::mse_loss(net(ids), ids.remainder(2).to(torch::kFloat).mean(1, /*keepdim=*/true));
    });
}
