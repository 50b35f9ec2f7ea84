// The right-hand program of docs/from_tensorflow.md; from_tensorflow.py is the left-hand one.
// [program]
#include <muster/muster.h>

namespace {

// [model]
struct NetImpl : torch::nn::Module {
  explicit NetImpl(muster::ModuleDevices& devices)
      : hidden(register_module("hidden", devices.Created(torch::nn::Linear(4, 16)))),
        output(register_module("output", devices.Created(torch::nn::Linear(16, 1)))) {}
  torch::Tensor forward(const torch::Tensor& x) { return output(torch::relu(hidden(x))); }

  torch::nn::Linear hidden, output;
};
TORCH_MODULE(Net);
// [/model]

}  // namespace

int main(int argc, char** argv) {
  // [cluster]
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();
  // [/cluster]

  // [setter]
  muster::DeviceStack scopes;
  muster::ModuleDevices devices(scopes);
  muster::DeviceScope scope(scopes, muster::ReplicaDeviceSetter({.cluster = task.cluster()}));
  Net net(devices);
  muster::Replica replica(server, net, {.devices = devices.Of(*net)});
  auto trainer = muster::Asynchronous(replica, muster::Adagrad({.learning_rate = 0.1}));  // counts global_step
  // [/setter]

  // [session]
  muster::SessionOptions options{
      .checkpoint_dir = task.model_dir(), .save_summaries_steps = 100, .config = {.allow_soft_placement = true}};
  muster::MonitoredTrainingSession session(
      server, options, {muster::StopAtStep({.last_step = 1000}), muster::LoggingTensor({.every_n_iter = 500})});
  // [/session]
  // [loop]
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      auto x = torch::rand({32, 4});
      auto loss = torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
      muster::summary::Scalar("loss", loss);  // for TensorBoard
      return loss;
    });
  // [/loop]
}
// [/program]
