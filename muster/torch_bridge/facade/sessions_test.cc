#include "muster/torch_bridge/facade/sessions.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "muster/base/testing/scratch_folder.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/facade/summaries.h"
#include "muster/torch_bridge/module/random_state.h"
#include "muster/train/hooks/hooks.h"

namespace muster::sessions_test {
namespace {

class SessionsTest : public ::testing::Test {
 protected:
  // A loss like a program's: it may register summaries in any session.
  torch::Tensor Loss() {
    auto loss = torch::mse_loss(net_(torch::ones({2, 4})), torch::ones({2, 1}));
    summary::Scalar("mse", loss);
    summary::Histogram("weights", net_->weight);
    return loss;
  }
  static absl::StatusCode CodeOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.status().code();
    }
    return absl::StatusCode::kOk;
  }

  const ScratchFolder scratch_;
  const std::string directory_ = scratch_.path();
  std::unique_ptr<Server> server_ = Server::CreateLocal();
  torch::nn::Linear net_{4, 1};
  Replica replica_{*server_, net_};
  Trainer trainer_ = Asynchronous(replica_, Sgd({.learning_rate = 0.1}));
};

TEST_F(SessionsTest, AMonitoredSessionHasTheCreatorsScaffoldAndNoHooksOfItsOwn) {
  int initialised = 0;
  const auto creator = std::make_shared<ChiefSessionCreator>(SessionCreatorOptions{
      .scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.init = [&] { return ++initialised, absl::OkStatus(); }}),
      .checkpoint_dir = directory_});
  MonitoredSession session(*server_, creator, {StopAtStep({.last_step = 3})});
  while (!session.ShouldStop()) session.Run(trainer_, [&] { return Loss(); });
  session.Close();
  EXPECT_EQ(initialised, 1);
  EXPECT_EQ(session.last_checkpoint(), "");
  EXPECT_EQ(CodeOf([&] { session.Run(trainer_, [&] { return Loss(); }); }), absl::StatusCode::kFailedPrecondition);
}

// Also a batch norm's statistics, and a backward pass of the program's own.
TEST_F(SessionsTest, TrainingIsTheSameToTheBitIfTheModelIsLookedAtBetweenItsSteps) {
  const auto train = [](bool looks) {
    SeedTorch(3);
    const auto server = Server::CreateLocal();
    torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 1));
    Replica replica(*server, net);
    Trainer trainer = Asynchronous(replica, Adam({.learning_rate = 0.1}));
    MonitoredTrainingSession session(*server, {}, {StopAtStep({.last_step = 8})});
    for (int step = 1; !session.ShouldStop(); ++step) {
      const torch::Tensor x = torch::arange(8 * 4).view({8, 4}).to(torch::kFloat32).sin() * step;
      const auto loss = [&] { return torch::mse_loss(net->forward(x), x.sum(1, /*keepdim=*/true)); };
      session.Run(trainer, loss);
      if (looks && !session.ShouldStop()) session.Fetch([&] { loss().backward(); });
      EXPECT_EQ(session.global_step(), step);
    }
    session.Close();
    std::vector<torch::Tensor> values;
    for (const torch::Tensor& value : net->parameters()) values.push_back(value.detach().clone());
    for (const torch::Tensor& value : net->buffers()) values.push_back(value.clone());
    return values;
  };
  const std::vector<torch::Tensor> looked_at = train(true), undisturbed = train(false);
  ASSERT_EQ(looked_at.size(), 9u);
  for (size_t i = 0; i < looked_at.size(); ++i) EXPECT_TRUE(torch::equal(looked_at[i], undisturbed[i])) << i;
}

TEST_F(SessionsTest, AnExceptionOfAFetchIsAnErrorAndOutOfRangeTheEnd) {
  MonitoredTrainingSession session(*server_, {});
  EXPECT_EQ(CodeOf([&] { session.Fetch([] { throw std::runtime_error("no test set"); }); }),
            absl::StatusCode::kUnknown);
  EXPECT_EQ(CodeOf([&] { session.Fetch([&] { session.Run(trainer_, [&] { return Loss(); }); }); }),
            absl::StatusCode::kFailedPrecondition);
  session.RunStepFn([&](MonitoredSession::StepContext& context) { context.session().Fetch([] {}); });
  EXPECT_FALSE(session.ShouldStop());
  session.Fetch([] { throw Error(absl::OutOfRangeError("nothing more to look at")); });
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.global_step(), 0);
}

TEST_F(SessionsTest, AStepFunctionRunsWithAndWithoutHooksAndEndsTheTraining) {
  MonitoredTrainingSession session(*server_, {});
  bool after = false;
  while (!session.ShouldStop())
    session.RunStepFn([&](MonitoredSession::StepContext& context) {
      EXPECT_EQ(context.session().Run(trainer_, [&] { return Loss(); }).global_step, 1);
      context.RunWithHooks(trainer_, [&] { return Loss(); });
      context.RequestStop();
      after = true;
    });
  EXPECT_FALSE(after) << "RequestStop leaves the function";
  EXPECT_EQ(session.global_step(), 2);
}

TEST_F(SessionsTest, ALossOfAStepFunctionMayEndTheTraining) {
  for (const bool hooked : {true, false}) {
    const auto server = Server::CreateLocal();
    torch::nn::Linear net(4, 1);
    Replica replica(*server, net);
    Trainer trainer = Asynchronous(replica, Sgd());
    MonitoredTrainingSession session(*server, {});
    session.Run(trainer, [&] { return net(torch::ones({2, 4})).mean(); });
    bool after = false;
    session.RunStepFn([&](MonitoredSession::StepContext& context) {
      const auto loss = [&]() -> torch::Tensor { context.RequestStop(); };
      hooked ? context.RunWithHooks(trainer, loss) : static_cast<void>(context.session().Run(trainer, loss));
      after = true;
    });
    EXPECT_FALSE(after) << "RequestStop leaves the function too";
    EXPECT_TRUE(session.ShouldStop());
    EXPECT_EQ(session.global_step(), 1) << "the step that was under way isn't made";
    session.Close();
  }
}

TEST_F(SessionsTest, WhatAStepFunctionThrowsIsThrownOn) {
  MonitoredTrainingSession session(*server_, {});
  EXPECT_THROW(session.RunStepFn([](MonitoredSession::StepContext&) { throw std::out_of_range("nine"); }),
               std::out_of_range);
  EXPECT_EQ(CodeOf([&] {
              session.RunStepFn([](MonitoredSession::StepContext&) { throw Error(absl::DataLossError("bad")); });
            }),
            absl::StatusCode::kDataLoss);
}

TEST_F(SessionsTest, TheEndOfTheInputIsACleanEnd) {
  MonitoredTrainingSession session(*server_, {});
  session.Run(trainer_, [&]() -> torch::Tensor { throw Error(absl::OutOfRangeError("end of input")); });
  EXPECT_TRUE(session.ShouldStop());
}

TEST_F(SessionsTest, ASingularSessionHasARawSession) {
  SingularMonitoredSession session(*server_, {StopAtStep({.last_step = 1})});
  EXPECT_TRUE(session.is_chief());
  EXPECT_EQ(session.raw_session().Run(trainer_, [&] { return Loss(); }).global_step, 1);
  EXPECT_FALSE(session.ShouldStop()) << "no hook saw it";
}

TEST_F(SessionsTest, ASupervisorTrainsAndSavesWhereItIsTold) {
  Server& server = *server_;
  Trainer& trainer = trainer_;
  const auto loss = [this] { return Loss(); };
  const std::string& directory = directory_;
  std::string saved;
  // [supervisor]
  TorchSupervisor supervisor(server, {.logdir = directory, .save_model_secs = 0});
  supervisor.ManagedSession([&](TorchSupervisor& session) {
    for (int i = 0; i < 3; ++i) session.Run(trainer, loss);
    saved = session.Save();
  });
  // [/supervisor]
  EXPECT_EQ(saved, directory_ + "/model.ckpt-3");
  EXPECT_TRUE(supervisor.ShouldStop());
}

TEST_F(SessionsTest, ASupervisorsServicesMayBeStartedLater) {
  TorchSupervisor supervisor(*server_, {.logdir = directory_, .save_summaries_secs = 0, .save_model_secs = 0});
  EXPECT_EQ(CodeOf([&] { supervisor.StartStandardServices(); }), absl::StatusCode::kFailedPrecondition);
  supervisor.PrepareOrWaitForSession(/*start_standard_services=*/false);
  supervisor.StartStandardServices();
  supervisor.Stop();
}

TEST_F(SessionsTest, ASingularSessionGoesOnFromTheCheckpointItIsGiven) {
  std::string second;
  torch::Tensor weight;
  TorchSupervisor supervisor(*server_, {.logdir = directory_, .save_model_secs = 0});
  supervisor.ManagedSession([&](TorchSupervisor& session) {
    for (int i = 0; i < 3; ++i) {
      if (session.Run(trainer_, [this] { return Loss(); }).global_step != 2) continue;
      second = session.Save();
      weight = net_->weight.detach().clone();
    }
    session.Save();
  });
  const auto server = Server::CreateLocal();
  torch::nn::Linear net(4, 1);
  Replica replica(*server, net);
  const Trainer trainer = Asynchronous(replica, Sgd({.learning_rate = 0.1}));
  SingularMonitoredSession session(*server, {}, {.checkpoint_filename_with_path = second});
  EXPECT_EQ(session.global_step(), 2) << "the newest is of step 3";
  EXPECT_TRUE(torch::equal(net->weight, weight));
}

TEST_F(SessionsTest, ASupervisorInALoopOfOnesOwn) {
  TorchSupervisor supervisor(*server_, {.logdir = directory_});
  supervisor.PrepareOrWaitForSession(/*start_standard_services=*/false);
  while (!supervisor.ShouldStop()) {
    if (supervisor.Run(trainer_, [&] { return Loss(); }).global_step == 3) supervisor.RequestStop();
  }
  supervisor.Stop();
  EXPECT_EQ(supervisor.supervisor().global_step(), 3);
  EXPECT_EQ(CodeOf([&] { supervisor.Save(); }), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionsTest, TheProgramsOfTheManual) {
  Server& server = *server_;
  torch::nn::Linear& net = net_;
  Trainer& trainer = trainer_;
  const auto loss = [this] { return Loss(); };
  {
    const std::string& directory = directory_;
    // [scaffold]
    const auto init = [&] {  // the chief's, if there is no checkpoint
      const torch::NoGradGuard no_grad;
      net->weight.fill_(1);
      return absl::OkStatus();
    };
    const auto scaffold =
        std::make_shared<Scaffold>(ScaffoldOptions{.init = init, .summary = [] { return summary::MergeAll(); }});
    MonitoredTrainingSession session(server, {.checkpoint_dir = directory, .scaffold = scaffold},
                                     {StopAtStep({.last_step = 3})});
    while (!session.ShouldStop()) session.Run(trainer, loss);
    // [/scaffold]
    session.Close();
    EXPECT_EQ(session.last_checkpoint(), directory_ + "/model.ckpt-3");
  }
}

TEST_F(SessionsTest, ASupervisorsConfigIsHeededWhereTheModuleIsPlaced) {
  SupervisorOptions options;
  options.config.gpu_options.visible_device_list = "the second";
  EXPECT_THROW(TorchSupervisor(*server_, options), Error);
}

TEST_F(SessionsTest, WhatTheBodyThrowsIsThrownOnAfterTheStop) {
  TorchSupervisor supervisor(*server_, {});
  EXPECT_THROW(supervisor.ManagedSession([](TorchSupervisor&) { throw std::out_of_range("nine"); }), std::out_of_range);
  EXPECT_TRUE(supervisor.ShouldStop());
}

TEST_F(SessionsTest, ATrainerThatIsNotTheSessionsIsRefused) {
  torch::nn::Linear other_net(4, 1);
  Replica other_replica(*server_, other_net);
  Trainer other = Asynchronous(other_replica, Sgd());
  Trainer last = Asynchronous(replica_, Sgd({.learning_rate = 0.2}));
  MonitoredTrainingSession session(*server_, {});
  EXPECT_EQ(CodeOf([&] { session.Run(trainer_, [&] { return Loss(); }); }), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf([&] { session.Run(other, [&] { return Loss(); }); }), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session.global_step(), 0);
  session.Run(last, [&] { return Loss(); });
  EXPECT_EQ(session.global_step(), 1);
}

TEST_F(SessionsTest, ALossThatRunsItsOwnSessionIsRefused) {
  MonitoredTrainingSession session(*server_, {});
  EXPECT_EQ(CodeOf([&] {
              session.Run(trainer_, [&] {
                session.Run(trainer_, [&] { return Loss(); });
                return Loss();
              });
            }),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf([&] { session.Run(trainer_, [&] { return session.Close(), Loss(); }); }),
            absl::StatusCode::kFailedPrecondition);
  session.Run(trainer_, [&] { return Loss(); });
  EXPECT_EQ(session.global_step(), 1);
  session.Close();
  session.Close();
}

TEST_F(SessionsTest, TrainsByASyncReplicasOptimizer) {
  SyncReplicasOptimizer optimizer(Sgd({.learning_rate = 0.1}), 1);
  Trainer trainer = Synchronous(replica_, optimizer);
  MonitoredTrainingSession session(*server_, {}, {optimizer.MakeSessionRunHook(true)});
  session.Run(trainer, [&] { return Loss(); });
  EXPECT_EQ(session.global_step(), 1);
}

}  // namespace
}  // namespace muster::sessions_test
