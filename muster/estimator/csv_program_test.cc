// The program of docs/canned_models.md: from a CSV file to a model that is trained, evaluated, used and exported.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "muster/base/testing/scratch_folder.h"
#include "muster/estimator/canned/canned.h"
#include "muster/estimator/distributed/train_and_evaluate.h"
#include "muster/estimator/testing/estimator_test_model.h"

namespace muster::csv_program_test {
namespace {

// Writes two clouds of flowers, one per line, with the species after the lengths.
void WriteFlowers(const std::string& path) {
  std::ofstream file(path);
  file << "length,width,species\n";
  for (int i = 0; i < 60; ++i) {
    const int species = i % 2;
    file << 1.5 + species + 0.01 * i << "," << 0.5 + species - 0.005 * i << "," << species << "\n";
  }
}

TEST(CsvProgramTest, FromAFileToAnExport) {
  const ScratchFolder folder;
  const std::string csv = JoinPath(folder.path(), "flowers.csv"), model_dir = JoinPath(folder.path(), "model");
  WriteFlowers(csv);
  const RunConfig config{.model_dir = model_dir, .seed = 1, .task = TaskConfig()};
  int of_species[2] = {0, 0};
  // [csv]
  // flowers.csv has the columns length, width and species; the label is 0 or 1.
  const Dataset flowers =
      Dataset::FromCsv({csv}, {.groups = {{.feature = "flower", .columns = {"length", "width"}}}, .label = "species"});
  const InputFn training = [&](const InputContext& context) {
    return flowers.Shuffle({.seed = 1, .buffer_size = 1000})
        .Shard(context.num_input_pipelines, context.input_pipeline_id)
        .Batch(20)
        .Repeat();
  };
  const InputFn everything = [&](const InputContext&) { return flowers.Batch(20); };

  DNNClassifier model({.hidden_units = {8}, .feature_columns = {NumericColumn("flower", 2)}}, config);
  const auto results = TrainAndEvaluate(model, {.input_fn = training, .max_steps = 300}, {.input_fn = everything});
  model.Predict(everything, [&](const Tensors& row) { ++of_species[row.at("class_ids").item<int64_t>()]; });
  // The features by name, with the type and shape of one row.
  const std::string exported = model.Export(JoinPath(model_dir, "export"), {{"flower", {DType::kFloat32, {2}}}});
  // [/csv]
  EXPECT_GT(results.eval.at("accuracy"), 0.95);
  EXPECT_NEAR(of_species[0], 30, 3);
  EXPECT_EQ(of_species[0] + of_species[1], 60);
  EXPECT_TRUE(PosixFileSystem().Exists(JoinPath(exported, "signature.json")));
}

}  // namespace
}  // namespace muster::csv_program_test
