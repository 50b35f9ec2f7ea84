// The program of docs/tutorial/sessions_and_hooks.md: a user's hook shows what a session does.
#include <muster/muster.h>

#include <iostream>

#include "absl/strings/str_format.h"

namespace {

// [hook]
class Story final : public muster::SessionHook {
 public:
  absl::Status Begin() override { return Tell("Begin"); }
  absl::Status AfterCreateSession(const muster::SessionContext& session) override {
    return Tell("AfterCreateSession at global step ", session.global_step);
  }
  absl::Status BeforeRun(muster::RunContext&) override { return Tell("  BeforeRun"); }
  absl::Status AfterRun(muster::RunContext& context, const muster::RunValues& values) override {
    if (values.loss < 1e-4) context.RequestStop();
    return Tell("  AfterRun at global step ", values.global_step);
  }
  absl::Status AfterFetch(muster::RunContext& context) override {
    return Tell("  AfterFetch at global step ", context.session().global_step);
  }
  absl::Status End(const muster::SessionContext& session) override {
    return Tell("End at global step ", session.global_step);
  }

 private:
  template <typename... Words>
  absl::Status Tell(const Words&... words) {
    (std::cout << ... << words) << "\n" << std::flush;
    return absl::OkStatus();
  }
};
// [/hook]

}  // namespace

int main(int argc, char** argv) {
  auto task = muster::TaskConfig::FromWholeCommandLine(argc, argv);
  muster::Server server(task);
  if (task.is_ps()) return server.Join();
  muster::SeedTorch(1);
  torch::nn::Linear net(4, 1);
  muster::Replica replica(server, net);
  auto trainer = muster::Asynchronous(replica, muster::Sgd({.learning_rate = 0.1}));
  // [session]
  muster::MonitoredTrainingSession session(
      server, {.checkpoint_dir = task.model_dir(), .save_checkpoint_steps = 100},
      {std::make_shared<Story>(), muster::StopAtStep({.num_steps = 3}), muster::LoggingTensor({.every_n_iter = 2})});
  // [fetch]
  session.Fetch([&] {
    const torch::NoGradGuard no_grad;
    const auto x = torch::ones({1, 4});
    std::cout << absl::StrFormat("  four ones make %.2f\n", net(x).item<float>()) << std::flush;
  });
  // [/fetch]
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      auto x = torch::rand({32, 4});
      auto loss = torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
      muster::summary::Scalar("error", loss);
      return loss;
    });
  // [/session]
  session.Close();
  std::cout << "saved as " << session.last_checkpoint() << "\n" << std::flush;
}
