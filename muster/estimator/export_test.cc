// Reads exports back by tools/load_export.py in the real Python torch: the predictions equal the module's own.
#include "muster/estimator/export.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/safetensors_file.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/facade/training.h"
#include "muster/train/hooks/hooks.h"

namespace muster::export_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

const std::string kPython = SourceFolder() + "/.venv/bin/python";
const std::string kLoader = SourceFolder() + "/tools/load_export.py";
constexpr int64_t kSeconds = 1700000000;

// Convolution, batch normalisation and a dense layer: variables of every kind that a program can name.
struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return output(torch::max_pool2d(torch::relu(norm(conv(x))), 2).flatten(1));
  }
  torch::nn::Conv2d conv{register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3).padding(1)))};
  torch::nn::BatchNorm2d norm{register_module("norm", torch::nn::BatchNorm2d(2))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(2 * 2 * 2, 3))};
};
TORCH_MODULE(Net);

std::vector<ExportStep> ProgramOfNet() {
  return {{"conv2d", {"image"}, "c", {{"weight", "conv.weight"}, {"bias", "conv.bias"}}, {{"padding", 1}}},
          {"batch_norm",
           {"c"},
           "n",
           {{"running_mean", "norm.running_mean"},
            {"running_var", "norm.running_var"},
            {"weight", "norm.weight"},
            {"bias", "norm.bias"}},
           {}},
          {"relu", {"n"}, "r", {}, {}},
          {"max_pool2d", {"r"}, "p", {}, {{"kernel_size", 2}}},
          {"flatten", {"p"}, "f", {}, {}},
          {"linear", {"f"}, "logits", {{"weight", "output.weight"}, {"bias", "output.bias"}}, {}},
          {"softmax", {"logits"}, "probabilities", {}, {}},
          {"argmax", {"logits"}, "class_ids", {}, {{"keepdim", 1}}},
          {"identity", {"class_ids"}, "classes", {}, {}}};
}

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override { Train(); }

  std::string Path(const std::string& name) const { return scratch_ / name; }

  // Three steps, so that the statistics of batch normalisation aren't the initial ones.
  void Train() {
    const auto server = Server::CreateLocal();
    torch::manual_seed(1);
    Replica replica(*server, net_);
    Trainer trainer = Asynchronous(replica, Sgd({.learning_rate = 0.1}));
    MonitoredTrainingSession session(*server, {.checkpoint_dir = Path("model")}, {StopAtStep({.last_step = 3})});
    while (!session.ShouldStop()) session.Run(trainer, [&] { return net_(torch::rand({4, 1, 4, 4})).square().mean(); });
    session.Close();
    checkpoint_ = CheckpointReader::Open(files_, session.last_checkpoint()).value();
    spec_.export_program = ProgramOfNet();
    spec_.export_outputs = {{"serving_default", {"classify", {"class_ids", "classes", "probabilities"}}}};
  }

  absl::StatusOr<std::string> Write(const ExportInputs& inputs, int64_t seconds = kSeconds) {
    return WriteExport(files_, Path("export"), absl::FromUnixSeconds(seconds), *checkpoint_, spec_, inputs);
  }
  std::string WriteOne() { return Write(inputs_).value(); }
  std::string Refusal(const ExportInputs& inputs) { return std::string(Write(inputs).status().message()); }

  FileSystem& files_ = PosixFileSystem();
  const ExportInputs inputs_ = {{"image", {DType::kFloat32, {1, 4, 4}}}};
  const ScratchFolder scratch_;
  Net net_;
  std::unique_ptr<CheckpointReader> checkpoint_;
  EstimatorSpec spec_;
};

TEST_F(ExportTest, PythonPredictsWhatTheModulePredicts) {
  const std::string path = WriteOne();
  net_->eval();
  torch::NoGradGuard no_grad;
  const torch::Tensor images = torch::rand({5, 1, 4, 4});
  const torch::Tensor expected = torch::softmax(net_(images), 1);
  const TensorView input{"image", DType::kFloat32, {5, 1, 4, 4}, AsBytes(images.data_ptr<float>(), images.numel())};
  ASSERT_TRUE(WriteTensorFile(files_, Path("x"), {&input, 1}).ok());
  ASSERT_EQ(
      std::system(
          absl::StrCat(kPython, " ", kLoader, " ", path, " --input ", Path("x"), " --output ", Path("y")).c_str()),
      0);
  const auto answer = TensorFileReader::Open(files_, Path("y")).value();
  torch::Tensor probabilities = torch::empty({5, 3});
  torch::Tensor class_ids = torch::empty({5, 1}, torch::kInt64);
  ASSERT_TRUE(answer->Read("probabilities", AsMutableBytes(probabilities.data_ptr<float>(), 15)).ok());
  ASSERT_TRUE(answer->Read("class_ids", AsMutableBytes(class_ids.data_ptr<int64_t>(), 5)).ok());
  EXPECT_TRUE(torch::allclose(probabilities, expected, 1e-5, 1e-6)) << probabilities << expected;
  EXPECT_TRUE(torch::equal(class_ids, expected.argmax(1, /*keepdim=*/true)));
  torch::Tensor classes = torch::empty({5, 1}, torch::kInt64);
  ASSERT_TRUE(answer->Read("classes", AsMutableBytes(classes.data_ptr<int64_t>(), 5)).ok());
  EXPECT_TRUE(torch::equal(classes, class_ids)) << "the same tensor by another name";
}

TEST_F(ExportTest, PythonRefusesWhatTheModelCanNotBeAsked) {
  const std::string path = WriteOne();
  const torch::Tensor images = torch::rand({5, 16});
  const TensorView input{"image", DType::kFloat32, {5, 16}, AsBytes(images.data_ptr<float>(), images.numel())};
  ASSERT_TRUE(WriteTensorFile(files_, Path("x"), {&input, 1}).ok());
  EXPECT_NE(std::system(absl::StrCat(kPython, " ", kLoader, " ", path, " --input ", Path("x"), " --output ", Path("y"),
                                     " 2> ", Path("err"))
                            .c_str()),
            0);
  const auto said = files_.ReadFile(Path("err")).value();
  EXPECT_THAT(said, HasSubstr("feature 'image' has the shape [5, 16], expected is [batch, 1, 4, 4]"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("Traceback")));
}

TEST_F(ExportTest, TheSignatureSaysWhatGoesInAndComesOut) {
  const auto text = files_.ReadFile(JoinPath(WriteOne(), "signature.json")).value();
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["format"], "muster export");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["global_step"], 3);
  EXPECT_EQ(json["weights"], "model.safetensors");
  EXPECT_EQ(json["inputs"].dump(), R"({"image":{"dtype":"float32","shape":[1,4,4]}})");
  EXPECT_EQ(json["outputs"]["serving_default"].dump(),
            R"({"method":"classify","predictions":["class_ids","classes","probabilities"]})");
  EXPECT_EQ(json["program"][0]["variables"]["weight"], "conv.weight");
  EXPECT_EQ(json["program"][0]["arguments"]["padding"], 1);
}

TEST_F(ExportTest, AModelWithoutAProgramIsItsWeights) {
  spec_.export_program.clear();
  const auto reader = TensorFileReader::Open(files_, JoinPath(WriteOne(), "model.safetensors")).value();
  std::vector<float> bias(3);
  ASSERT_TRUE(reader->Read("output.bias", AsMutableBytes(bias.data(), bias.size())).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bias[i], net_->output->bias[i].item<float>());
}

TEST_F(ExportTest, ExportsOfOneSecondFollowEachOther) {
  EXPECT_EQ(WriteOne(), Path("export/1700000000"));
  EXPECT_EQ(WriteOne(), Path("export/1700000001"));
  ASSERT_TRUE(Write(inputs_, kSeconds - 100).ok()) << "a clock that was set back";
  const auto numbers = ListExports(files_, Path("export")).value();
  EXPECT_THAT(numbers, ElementsAre(kSeconds, kSeconds + 1, kSeconds + 2));
}

TEST_F(ExportTest, WhatAKilledExportLeftIsNoExport) {
  ASSERT_TRUE(files_.CreateDirectory(Path("export/temp-1700000000")).ok());
  ASSERT_TRUE(files_.CreateDirectory(Path("export/5")).ok());
  const auto none = ListExports(files_, Path("export")).value();
  EXPECT_THAT(none, ElementsAre());
  EXPECT_EQ(WriteOne(), Path("export/1700000000"));
  EXPECT_FALSE(files_.Exists(Path("export/temp-1700000000")));
}

TEST_F(ExportTest, AFolderThatIsNotCalledAsExportsAreIsNone) {
  WriteOne();
  ASSERT_TRUE(files_.Rename(Path("export/1700000000"), Path("export/01700000000")).ok());
  EXPECT_THAT(*ListExports(files_, Path("export")), ElementsAre());
  WriteOne();
  EXPECT_THAT(*ListExports(files_, Path("export")), ElementsAre(kSeconds));
}

TEST_F(ExportTest, TheNewestAreKept) {
  for (int i = 0; i < 4; ++i) WriteOne();
  ASSERT_TRUE(RemoveOldExports(files_, Path("export"), 0).ok());
  EXPECT_EQ(ListExports(files_, Path("export"))->size(), 4);
  ASSERT_TRUE(RemoveOldExports(files_, Path("export"), 2).ok());
  EXPECT_THAT(*ListExports(files_, Path("export")), ElementsAre(kSeconds + 2, kSeconds + 3));
  ASSERT_TRUE(RemoveOldExports(files_, Path("nothing"), 2).ok());
}

TEST_F(ExportTest, RefusesWhatNobodyCouldLoad) {
  EXPECT_THAT(Refusal({}), HasSubstr("needs at least one input"));
  EXPECT_THAT(Refusal({{"image", {DType::kFloat32, {4, 0}}}}), HasSubstr("'image': shape [4, 0]"));
  EXPECT_THAT(Refusal({{"picture", {DType::kFloat32, {4}}}}), HasSubstr("reads 'image'"));
  spec_.export_outputs["more"] = {"predict", {"logit"}};
  EXPECT_THAT(Refusal(inputs_), HasSubstr("output 'more' has the prediction 'logit'"));
  spec_.export_outputs.erase("more");
  spec_.export_program[0].variables["bias"] = "conv.bios";
  EXPECT_THAT(Refusal(inputs_), HasSubstr("its bias the variable 'conv.bios'"));
  EXPECT_FALSE(files_.Exists(Path("export"))) << "a refused export leaves nothing";
}

}  // namespace
}  // namespace muster::export_test
