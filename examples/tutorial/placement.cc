// The program of docs/tutorial/placement.md: three ways to say which parameter server holds which variable.
#include <muster/muster.h>

#include <iostream>

namespace {

// [net]
// An embedding that outweighs the rest, as usual.
struct NetImpl : torch::nn::Module {
  torch::nn::Embedding words{register_module("words", torch::nn::Embedding(10000, 32))};
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(32, 64))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(64, 10))};
};
TORCH_MODULE(Net);
// [/net]

void Show(const char* title, muster::Replica& replica) {
  std::cout << title << "\n";
  for (const muster::PlacedSlice& slice : replica.placement().slices) {
    std::cout << "  " << replica.source().variables()[slice.variable].name;
    if (slice.num_shards > 1) std::cout << " (" << slice.shard + 1 << " of " << slice.num_shards << ")";
    std::cout << " -> ps " << slice.ps << "\n";
  }
  std::cout << muster::LoadReport(replica.placement()) << "\n" << std::flush;
}

// [scopes]
// TensorFlow's way: what is created inside a scope goes to the scope's device.
class ScopedNet : public torch::nn::Module {
 public:
  ScopedNet(const muster::ClusterSpec& cluster, muster::DeviceStack& scopes, muster::ModuleDevices& devices) {
    const muster::DeviceScope on_ps(scopes, muster::ReplicaDeviceSetter({.cluster = cluster}));
    {
      const muster::DeviceScope there(scopes, "/job:ps/task:1");
      words_ = register_module("words", devices.Created(torch::nn::Embedding(10000, 32)));
    }
    hidden_ = register_module("hidden", devices.Created(torch::nn::Linear(32, 64)));
    output_ = register_module("output", devices.Created(torch::nn::Linear(64, 10)));
  }

 private:
  torch::nn::Embedding words_ = nullptr;
  torch::nn::Linear hidden_ = nullptr;
  torch::nn::Linear output_ = nullptr;
};
// [/scopes]

}  // namespace

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();
  {
    // [round_robin]
    muster::Replica replica(server, Net(), {.placement = muster::Placement::kRoundRobin});
    // [/round_robin]
    Show("round robin", replica);
  }
  {
    // [greedy]
    muster::Replica replica(server, Net(), {.placement = muster::Placement::kGreedyBySize});
    // [/greedy]
    Show("greedy by size", replica);
  }
  {
    // [partitioned]
    const muster::Partitioning in_two = {.kind = muster::Partitioning::Kind::kMinSlice, .max_partitions = 2};
    muster::Replica replica(server, Net(), {.placement = muster::Placement::kGreedyBySize, .partitioning = in_two});
    // [/partitioned]
    Show("large variables in two slices", replica);
  }
  {
    // [scoped]
    muster::DeviceStack scopes;
    muster::ModuleDevices devices(scopes);
    auto net = std::make_shared<ScopedNet>(task.cluster(), scopes, devices);
    muster::Replica replica(server, net, {.devices = devices.Of(*net)});
    // [/scoped]
    Show("by device scopes", replica);
  }
}
