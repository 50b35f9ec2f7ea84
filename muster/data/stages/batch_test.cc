// Batch: examples that can't be stacked.
#include <gmock/gmock.h>

#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::batch_test {
namespace {

using ::testing::HasSubstr;

class BatchTest : public testing::TestWithParam<bool> {
 protected:
  // Returns the result for a batch of three whose last row `change` has changed.
  static absl::Status With(const std::function<void(Example&)>& change) {
    auto stream = OpenOrFail((GetParam() ? StreamedNumbers(3) : NumberedRows(3))
                                 .Map([change](Example& example) {
                                   if (example.labels.As<int64_t>()[0] == 2) change(example);
                                   return absl::OkStatus();
                                 })
                                 .Batch(3));
    Example batch;
    return stream->Next(batch).status();
  }
};
INSTANTIATE_TEST_SUITE_P(Sources, BatchTest, testing::Bool(),
                         [](const auto& streamed) { return streamed.param ? "Streamed" : "Memory"; });

TEST_P(BatchTest, RowsOfUnlikeShapesAreAnErrorThatNamesThem) {
  const absl::Status shape = With([](Example& row) { row.Find("x")->Reset(DType::kFloat32, {3}); });
  EXPECT_TRUE(absl::IsInvalidArgument(shape));
  EXPECT_THAT(std::string(shape.message()),
              HasSubstr("x of row 2 of a batch is float32 [3], that of its first row float32 [2]"));
  const absl::Status type = With([](Example& row) { row.labels = Array::Scalar(1.0F); });
  EXPECT_THAT(std::string(type.message()),
              HasSubstr("the label of row 2 of a batch is float32 [], that of its first row "
                        "int64 []"));
}

TEST_P(BatchTest, RowsOfUnlikeFeaturesAreAnErrorThatNamesThem) {
  const absl::Status more = With([](Example& row) { row.features.push_back({"y", Array::Scalar(1.0F)}); });
  EXPECT_TRUE(absl::IsInvalidArgument(more));
  EXPECT_THAT(std::string(more.message()),
              HasSubstr("row 2 of a batch has the features [x, y] and a label, its first row [x] and a label"));
  const absl::Status unlabelled = With([](Example& row) { row.has_labels = false; });
  EXPECT_THAT(std::string(unlabelled.message()), HasSubstr("[x], its first row [x] and a label"));
}

TEST_P(BatchTest, LikeRowsAreAGoodBatch) {
  EXPECT_EQ(With([](Example&) {}), absl::OkStatus());
}

}  // namespace
}  // namespace muster::batch_test
