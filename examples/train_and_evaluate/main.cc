// One model, described once, that the same program trains and evaluates wherever it runs: in one process, or as the
// chief, a worker, the ps or the evaluator of a cluster, as flags or TF_CONFIG say.
#include <memory>

#include "examples/digits/accuracy.h"
#include "examples/digits/input.h"
#include "examples/digits/net.h"
#include "examples/train_and_evaluate/flags.h"
#include "muster/estimator/distributed/early_stopping_by_evaluation.h"
#include "muster/estimator/distributed/train_and_evaluate.h"
#include "muster/muster.h"

namespace {

using Images = std::shared_ptr<const muster::ImageData>;

// Describes the outputs for a batch, the loss, the training and the metrics.
muster::EstimatorSpec Model(const Images& images) {
  const auto height = static_cast<int64_t>(images->height), width = static_cast<int64_t>(images->width);
  Net net(height, width, static_cast<int64_t>(images->classes));
  muster::EstimatorSpec spec;
  spec.module = net.ptr();
  spec.forward = [net, height, width](const muster::Minibatch& batch) mutable {
    const torch::Tensor pixels = muster::FeatureOf(batch, "features").reshape({-1, 1, height, width});
    const torch::Tensor logits = net->forward(pixels);
    muster::ModelOutputs outputs{.predictions = {{"class_ids", logits.argmax(1)}, {"logits", logits}}};
    if (batch.labels.defined()) outputs.loss = torch::nn::functional::cross_entropy(logits, batch.labels);
    return outputs;
  };
  spec.optimizer = muster::Adam({.learning_rate = 0.001});
  spec.eval_metrics = {{"accuracy", muster::AccuracyMetric()}};
  return spec;
}

// Each worker takes its share of the training part, in a new order each epoch, without end.
muster::InputFn TrainingInput(const Images& images, const Flags& flags) {
  const std::shared_ptr<const muster::LabelledRows> rows(images, &images->split.train);
  return [rows, flags](const muster::InputContext& context) {
    return muster::Dataset::FromRows(rows)
        .Shuffle({.seed = flags.seed})
        .Shard(context.num_input_pipelines, context.input_pipeline_id)
        .Batch(flags.batch_size)
        .Repeat()
        .Prefetch();
  };
}

// Passes through the held-out part once.
muster::InputFn EvaluationInput(const Images& images) {
  const std::shared_ptr<const muster::LabelledRows> rows(images, &images->split.test);
  return [rows](const muster::InputContext&) { return muster::Dataset::FromRows(rows).Batch(500); };
}

}  // namespace

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  const auto choice = muster::AlgorithmChoice::FromCommandLine(argc, argv, {.name = "hogwild"});
  const Flags flags = ParseFlags(argc, argv);
  // A ps needs no data.
  const auto images = std::make_shared<const muster::ImageData>(task.is_ps() ? muster::ImageData()
                                                                             : LoadImages(flags.data_dir, flags.csv));

  muster::Estimator estimator([images](const muster::ModelContext&) { return Model(images); },
                              {.seed = flags.seed,
                               .save_checkpoints_steps = flags.save_steps,
                               .algorithm = choice,
                               .node = {.threads = 1},
                               .task = task});
  muster::TrainSpec train_spec{.input_fn = TrainingInput(images, flags), .max_steps = flags.steps};
  if (flags.stop_at_accuracy > 0)
    train_spec.hooks.push_back(muster::StopIfEvalIsHigher(
        estimator, flags.stop_at_accuracy, {.metric = "accuracy", .check = {.run_every = absl::Seconds(0.5)}}));
  const muster::EvalSpec eval_spec{.input_fn = EvaluationInput(images),
                                   .steps = std::nullopt,
                                   .start_delay_secs = flags.start_delay_secs,
                                   .throttle_secs = flags.throttle_secs,
                                   .patience_secs = flags.patience_secs};

  // Only the evaluating task knows how good the model is.
  const auto results = muster::TrainAndEvaluate(estimator, train_spec, eval_spec);
  if (results.eval.contains("accuracy"))
    PrintTestAccuracy(results.eval.at("accuracy"), static_cast<int64_t>(results.eval.at("global_step")));
}
