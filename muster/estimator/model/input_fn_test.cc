#include "muster/estimator/model/input_fn.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/wrong_configuration.h"
#include "muster/train/threads/error.h"

namespace muster::input_fn_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

// Rows 0 … count − 1: feature "x" [2] of (i, i + 0.5), label i.
Dataset Rows(int64_t count) {
  Example rows;
  std::vector<float> x;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    x.push_back(static_cast<float>(i));
    x.push_back(static_cast<float>(i) + 0.5F);
    labels.push_back(i);
  }
  rows.features.push_back({"x", Array::Of({count, 2}, x)});
  rows.labels = Array::Of({count}, labels);
  rows.has_labels = true;
  return Dataset::FromMemory(std::move(rows));
}

InputFn Batches(int64_t rows, size_t batch) {
  return [=](const InputContext&) { return Rows(rows).Batch(batch); };
}

std::vector<int64_t> LabelsOf(const Minibatch& minibatch) {
  const auto* labels = minibatch.labels.const_data_ptr<int64_t>();
  return {labels, labels + minibatch.labels.numel()};
}

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(InputReaderTest, HandsOutBatchesAsTensors) {
  InputReader reader(Batches(5, 2), {}, "the input");
  Minibatch minibatch;
  ASSERT_TRUE(reader.Next(minibatch));
  EXPECT_EQ(minibatch.size(), 2);
  EXPECT_TRUE(torch::equal(FeatureOf(minibatch, "x"), torch::tensor({{0.0F, 0.5F}, {1.0F, 1.5F}})));
  EXPECT_THAT(LabelsOf(minibatch), ElementsAre(0, 1));
  ASSERT_TRUE(reader.Next(minibatch));
  ASSERT_TRUE(reader.Next(minibatch));
  EXPECT_THAT(LabelsOf(minibatch), ElementsAre(4));
  EXPECT_FALSE(reader.Next(minibatch));
  EXPECT_FALSE(reader.Next(minibatch)) << "and stays at the end";
}

TEST(InputReaderTest, MemoryIsUsedAgainOnceItsTensorsAreGone) {
  InputReader reader(Batches(8, 2), {}, "the input");
  Minibatch minibatch;
  ASSERT_TRUE(reader.Next(minibatch));
  const void* first = minibatch.features["x"].const_data_ptr();
  ASSERT_TRUE(reader.Next(minibatch));
  EXPECT_EQ(minibatch.features["x"].const_data_ptr(), first);
  // A tensor that is still referenced isn't overwritten.
  const torch::Tensor kept = minibatch.features["x"];
  const torch::Tensor copy = kept.clone();
  ASSERT_TRUE(reader.Next(minibatch));
  EXPECT_NE(minibatch.features["x"].const_data_ptr(), kept.const_data_ptr());
  EXPECT_TRUE(torch::equal(kept, copy));
}

TEST(InputReaderTest, TensorsMayOutliveTheReader) {
  Minibatch minibatch;
  {
    InputReader reader(Batches(4, 4), {}, "the input");
    ASSERT_TRUE(reader.Next(minibatch));
  }
  EXPECT_THAT(LabelsOf(minibatch), ElementsAre(0, 1, 2, 3));
}

TEST(InputReaderTest, TheFunctionIsToldWhichOfHowManyReadersItIs) {
  InputReader reader(
      [](const InputContext& context) {
        return Rows(6).Shard(context.num_input_pipelines, context.input_pipeline_id).Batch(6);
      },
      {.num_input_pipelines = 3, .input_pipeline_id = 1}, "the input");
  Minibatch minibatch;
  ASSERT_TRUE(reader.Next(minibatch));
  EXPECT_THAT(LabelsOf(minibatch), ElementsAre(1, 4));
}

TEST(InputReaderTest, GoesOnWhereItsPositionWasSaved) {
  InputReader before(Batches(6, 2), {}, "the input");
  Minibatch minibatch;
  ASSERT_TRUE(before.Next(minibatch));
  const std::string saved = before.Position().save();
  InputReader after(Batches(6, 2), {}, "the input");
  ASSERT_EQ(after.Position().restore(saved), absl::OkStatus());
  ASSERT_TRUE(after.Next(minibatch));
  EXPECT_THAT(LabelsOf(minibatch), ElementsAre(2, 3));
}

// Trains once more by the same function, as TensorFlow programs do epoch by epoch.
TEST(InputReaderTest, APositionAtTheEndBeginsAnew) {
  InputReader before(Batches(4, 2), {}, "the input");
  Minibatch minibatch;
  while (before.Next(minibatch)) {
  }
  InputReader after(Batches(4, 2), {}, "the input");
  ASSERT_EQ(after.Position().restore(before.Position().save()), absl::OkStatus());
  ASSERT_TRUE(after.Next(minibatch));
  EXPECT_THAT(LabelsOf(minibatch), ElementsAre(0, 1));
}

TEST(InputReaderTest, NothingAtAllIsAnError) {
  InputReader reader([](const InputContext&) { return Rows(3).Skip(3).Batch(4); }, {}, "the input");
  Minibatch minibatch;
  EXPECT_THAT(MessageOf([&] { reader.Next(minibatch); }), AllOf(HasSubstr("the input"), HasSubstr("yielded nothing")));
}

TEST(InputReaderTest, ElementsThatAreNoBatchesAreAnError) {
  InputReader rows([](const InputContext&) { return Rows(3); }, {}, "the input");
  Minibatch minibatch;
  EXPECT_THAT(MessageOf([&] { rows.Next(minibatch); }), AllOf(HasSubstr("'labels'"), HasSubstr("Batch")));
}

TEST(InputReaderTest, WhatThePipelineSaysIsGivenOn) {
  EXPECT_THAT(MessageOf([] { InputReader({}, {}, "the input"); }), HasSubstr("the input"));
  const auto bad = [](const InputContext&) { return Rows(3).Batch(0); };
  EXPECT_THAT(MessageOf([&] { InputReader(bad, {}, "the input"); }), HasSubstr("the input: "));
  const auto throws = [](const InputContext&) -> Dataset { throw Error(absl::NotFoundError("no such file")); };
  EXPECT_THAT(MessageOf([&] { InputReader(throws, {}, "the input"); }), HasSubstr("no such file"));
}

TEST(InputReaderTest, AFeatureThatIsNotThereIsNamed) {
  InputReader reader(Batches(2, 2), {}, "the input");
  Minibatch minibatch;
  ASSERT_TRUE(reader.Next(minibatch));
  EXPECT_THAT(MessageOf([&] { FeatureOf(minibatch, "y"); }), AllOf(HasSubstr("'y'"), HasSubstr("it has x")));
}

// Hands out units of an epoch, and records what it is told.
class ScriptedWork final : public WorkSource {
 public:
  ScriptedWork(int64_t rows, int64_t rows_per_unit) : rows_(rows), rows_per_unit_(rows_per_unit) {}
  absl::StatusOr<std::optional<WorkUnit>> Take() override {
    if (next_ >= rows_) return std::nullopt;
    const WorkUnit unit{.epoch = 0, .begin = next_, .end = std::min(rows_, next_ + rows_per_unit_)};
    next_ = unit.end;
    return unit;
  }
  absl::Status Done() override {
    ++done;
    return absl::OkStatus();
  }
  void Stop() override {}

  int done = 0;

 private:
  const int64_t rows_;
  const int64_t rows_per_unit_;
  int64_t next_ = 0;
};

struct SharedInput {
  // `rows` in units of `per_unit`, drawn in batches of `batch`.
  SharedInput(int64_t rows, int64_t per_unit, size_t batch, int64_t rows_of_others = 0)
      : work(std::make_shared<ScriptedWork>(rows, per_unit)),
        reader(
            [=](const InputContext& context) {
              return Rows(rows + rows_of_others).ShareBy(context.share(rows, per_unit, 1)).Batch(batch);
            },
            {.share = [kept = work](int64_t, int64_t, int64_t) { return kept; }}, "the input") {}

  std::shared_ptr<ScriptedWork> work;
  InputReader reader;
};

TEST(SharedInputTest, AUnitIsDoneWhenAllItsRowsAreLearned) {
  SharedInput input(/*rows=*/10, /*per_unit=*/4, /*batch=*/2);
  Minibatch minibatch;
  std::vector<int> done;
  while (input.reader.Next(minibatch)) {
    input.reader.StepOver();
    done.push_back(input.work->done);
  }
  EXPECT_THAT(done, ElementsAre(0, 1, 1, 2, 3)) << "units end behind 4, 8 and 10 rows";
}

TEST(SharedInputTest, AReaderWhoComesTooLateForAnyWorkHasAnEndWithoutAnError) {
  SharedInput input(/*rows=*/0, /*per_unit=*/2, /*batch=*/2, /*rows_of_others=*/4);
  Minibatch minibatch;
  EXPECT_FALSE(input.reader.Next(minibatch));
  input.reader.StepOver();
  EXPECT_EQ(input.work->done, 0);
}

TEST(SharedInputTest, WorkIsSharedOnceAFunction) {
  const auto work = std::make_shared<ScriptedWork>(4, 2);
  const InputContext context{.share = [work](int64_t, int64_t, int64_t) { return work; }};
  const auto twice = [](const InputContext& given) {
    given.share(4, 2, 1);
    given.share(4, 2, 1);
    return Rows(4).Batch(2);
  };
  EXPECT_THAT(MessageOf([&] { InputReader(twice, context, "the input"); }), HasSubstr("twice"));
}

TEST(MinibatchTest, ArraysAndTensorsBecomeEachOther) {
  const torch::Tensor tensor = torch::arange(6, torch::kInt32).view({2, 3}).t();
  const Array array = ArrayOf(tensor);
  EXPECT_EQ(array.dtype(), DType::kInt32);
  EXPECT_THAT(array.shape(), ElementsAre(3, 2));
  EXPECT_THAT(std::vector<int32_t>(array.As<int32_t>().begin(), array.As<int32_t>().end()),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_TRUE(torch::equal(TensorOf(array), tensor));
  EXPECT_THAT(MessageOf([] { ArrayOf(torch::zeros({1}, torch::kComplexFloat)); }), HasSubstr("ComplexFloat"));
}

}  // namespace
}  // namespace muster::input_fn_test
