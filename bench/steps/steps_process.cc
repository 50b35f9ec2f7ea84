#include "bench/steps/steps_process.h"

#include "bench/support/local_loop.h"
#include "bench/support/meter.h"
#include "bench/support/mlp.h"
#include "muster/muster.h"

namespace muster::bench {
namespace {

// Omits what an update saves in case the worker dies, to measure what that costs.
class NoUndo final : public ArenaProbe {
 public:
  void At(ArenaPoint) override {}
  bool Has(PlantedBug bug) const override { return bug == PlantedBug::kNoUndo; }
  bool dying() const override { return false; }
};

OptimizerSpec OptimizerOf(const StepsWay& way) {
  if (way.rule == "adam") return Adam({.learning_rate = kMlpAdamLearningRate});
  return Sgd({.learning_rate = kMlpLearningRate});
}

ReduceWhen ReduceWhenOf(const std::string& name) {
  if (name == "after") return ReduceWhen::kAfter;
  if (name == "within") return ReduceWhen::kWithin;
  return name == "beside" ? ReduceWhen::kBeside : ReduceWhen::kAuto;
}

Trainer TrainerOf(Replica& replica, const StepsProcess& process) {
  const StepsWay& way = process.way;
  if (way.by_name) return MakeTrainer(replica, AlgorithmChoice{.name = way.mode});
  const OptimizerSpec optimizer = OptimizerOf(way);
  const auto workers = static_cast<uint32_t>(way.workers);
  if (way.mode == "sync")
    return Synchronous(replica, optimizer, {.replicas_to_aggregate = workers, .total_replicas = workers});
  if (way.mode == "pipelined") return Pipelined(replica, optimizer);
  if (way.mode == kAllReduce)
    return AllReduce(replica, optimizer,
                     {.bucket_bytes = process.settings.bucket_bytes, .when = ReduceWhenOf(way.reduce)});
  return Asynchronous(replica, optimizer);
}

}  // namespace

void Train(const TaskConfig& task, const StepsProcess& process) {
  const StepsWay& way = process.way;
  const MeterOptions meter = {.folder = process.folder,
                              .task = process.task,
                              .workers = way.workers,
                              .seconds = process.settings.seconds,
                              .in_step = way.in_step(),
                              .ps = process.ps};
  const MlpWork work = {way.model, way.rule};
  const uint64_t seed = 1 + static_cast<uint64_t>(process.task);
  if (way.mode == kLocal) {
    const auto step = MakeLocalStep(work, seed);
    Measure(meter, [&](bool) {
      step();
      return 0;
    });
    return;
  }
  MlpData data(seed);
  Mlp model(work);
  NoUndo no_undo;
  const WirePrecision wire = ParseWirePrecision(way.wire).value();
  const bool tcp = way.transport == "tcp" || way.transport == "ring";
  Server server(task, {.apply = ParseApplyChoice(way.apply).value_or(ApplyChoice::kAuto),
                       .transport = tcp ? TransportChoice::kTcp : TransportChoice::kAuto,
                       .wire = {.gradients = wire, .parameters = wire},
                       .threads = 1,
                       .probe = way.undo ? nullptr : &no_undo,
                       .part_bytes = process.settings.part_bytes});
  Replica replica(server, model);
  Trainer trainer = TrainerOf(replica, process);
  MonitoredTrainingSession session(server, {.log_step_count_steps = 0});
  Measure(meter, [&](bool) {
    session.Run(trainer, [&] { return MlpLoss(model, data.Next()); });
    return 0;
  });
}

}  // namespace muster::bench
