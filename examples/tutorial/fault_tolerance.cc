// The program of docs/tutorial/fault_tolerance.md: one task of the run, named by the argument, is killed once.
#include <muster/muster.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

namespace {

// [die]
// Like `kill -9` a second after the start, but only in the first life.
void DieOnce(const std::string& model_dir) {
  const std::string mark = model_dir + "/died";
  if (std::filesystem::exists(mark)) return;
  std::filesystem::create_directories(model_dir);
  std::ofstream(mark) << "once\n";
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::raise(SIGKILL);
  }).detach();
}
// [/die]

}  // namespace

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  if (argc > 1 && task.task().ToString() == argv[1]) DieOnce(task.model_dir());
  muster::Server server(task);
  if (task.is_ps()) return server.Join();

  torch::nn::Linear net(4, 1);
  muster::Replica replica(server, net);
  auto trainer = muster::Asynchronous(replica, muster::Sgd({.learning_rate = 0.1}));
  // [session]
  muster::MonitoredTrainingSession session(server, {.checkpoint_dir = task.model_dir(), .save_checkpoint_steps = 500},
                                           {muster::StopAtStep({.last_step = 3000})});
  int64_t backwards = 0;
  for (int64_t seen = 0; !session.ShouldStop(); seen = session.global_step()) {
    session.Run(trainer, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a larger model
      auto x = torch::rand({32, 4});
      return torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
    });
    if (session.global_step() < seen) ++backwards;
  }
  std::cout << "done; global step never went back" << (backwards > 0 ? ", but it did" : "") << "\n" << std::flush;
  // [/session]
}
