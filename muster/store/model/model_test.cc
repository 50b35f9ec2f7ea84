#include "muster/store/model/model.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "muster/store/testing/simulated_store.h"

namespace muster::model_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {{.name = "fc.weight", .shape = {784, 100}},
                                              {.name = "fc.bias", .shape = {100}},
                                              {.name = "out", .dtype = DType::kFloat64, .shape = {}}};

std::string Difference(const StoreModel& theirs, const std::vector<VariableSpec>& chiefs = kVariables) {
  const absl::Status status = CompareModels(ModelOn(chiefs, {}), theirs, "worker:1");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  return std::string(status.message());
}

TEST(ModelTest, TheSameModelIsTheSame) {
  EXPECT_EQ(CompareModels(ModelOn(kVariables, {}), ModelOn(kVariables, {}), "worker:1"), absl::OkStatus());
}

TEST(ModelTest, TheFirstDifferentVariableIsNamedWithBothShapes) {
  std::vector<VariableSpec> theirs = kVariables;
  theirs[1].shape = {128};
  theirs[2].shape = {9};
  EXPECT_THAT(Difference(ModelOn(theirs, {})), AllOf(HasSubstr("worker:1 has 'fc.bias' float32[128]"),
                                                     HasSubstr("the chief has 'fc.bias' float32[100]")));
  theirs = kVariables;
  theirs[0].name = "fc1.weight";
  EXPECT_THAT(Difference(ModelOn(theirs, {})), AllOf(HasSubstr("'fc1.weight'"), HasSubstr("'fc.weight'")));
  theirs = kVariables;
  theirs[2].dtype = DType::kFloat32;
  EXPECT_THAT(Difference(ModelOn(theirs, {})), AllOf(HasSubstr("'out' float32[]"), HasSubstr("'out' float64[]")));
  theirs = kVariables;
  theirs[1].kind = VariableKind::kFrozen;
  EXPECT_THAT(Difference(ModelOn(theirs, {})),
              AllOf(HasSubstr("'fc.bias'"), HasSubstr("only one of them is trainable")));
}

TEST(ModelTest, AVariableMoreOrLessIsNamedWithItsSide) {
  std::vector<VariableSpec> fewer = {kVariables[0], kVariables[1]};
  EXPECT_THAT(Difference(ModelOn(fewer, {})), AllOf(HasSubstr("worker:1 has 2 variables, the chief's has 3"),
                                                    HasSubstr("'out' float64[] is only in the latter")));
  EXPECT_THAT(Difference(ModelOn(kVariables, {}), fewer), HasSubstr("'out' float64[] is only in the former"));
}

TEST(ModelTest, AnotherRuleOrPlacementIsSaid) {
  EXPECT_THAT(Difference(ModelOn(kVariables, {.kind = RuleKind::kAdam})), AllOf(HasSubstr("adam"), HasSubstr("sgd")));
  EXPECT_THAT(Difference(ModelOn(kVariables, {.learning_rate = 0.5})), HasSubstr("learning_rate 0.5"));
  EXPECT_THAT(Difference(ModelOn(kVariables, {}, 2)), HasSubstr("places or partitions"));
  EXPECT_THAT(Difference(ModelOn(kVariables, {}, 1, 0, {.kind = Partitioning::Kind::kFixed, .shards = 2})),
              HasSubstr("places or partitions"));
}

TEST(ModelTest, TheWorkersOrderIsComparedAndSaid) {
  StoreModel ordered = ModelOn(kVariables, {});
  ordered.ordered = true;
  EXPECT_THAT(Difference(ordered), AllOf(HasSubstr("worker:1 trains with no gate, in the workers' order"),
                                         HasSubstr("the chief with no gate;")));
  EXPECT_TRUE(ordered.applied_by_ps_alone());
}

TEST(ModelTest, AnOrderIsRefusedForTablesWhoseRowsComeWithoutTurns) {
  StoreModel model =
      ModelOn({{.name = "words", .shape = {10, 2}, .kind = VariableKind::kRows}, {.name = "w", .shape = {4}}}, {});
  EXPECT_EQ(ValidateModel(model), absl::OkStatus());
  model.ordered = true;
  EXPECT_THAT(std::string(ValidateModel(model).message()), HasSubstr("variable 'words' is a table of rows"));
}

// In turn, every worker waits for those before it.
TEST(ModelTest, AnOrderThatCouldNeverGoOnIsRefused) {
  StoreModel model = ModelOn(kVariables, {});
  model.ordered = true;
  EXPECT_EQ(ValidateModel(model), absl::OkStatus());
  model.clock_limit = 2;
  EXPECT_EQ(ValidateModel(model), absl::OkStatus());
  model.clock_limit = 1;
  EXPECT_THAT(std::string(ValidateModel(model).message()), HasSubstr("a staleness bound of 0"));
  model.clock_limit = 0;
  model.gate = {GateKind::kSynchronous, 3, 3, false};
  EXPECT_EQ(ValidateModel(model), absl::OkStatus());
  for (const GateSpec& gate :
       {GateSpec{GateKind::kSynchronous, 2, 3, false}, GateSpec{GateKind::kSynchronous, 3, 3, true}}) {
    model.gate = gate;
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateModel(model))) << gate.replicas_to_aggregate;
  }
}

TEST(ModelTest, GoodModelsAreValid) {
  EXPECT_EQ(ValidateModel({}), absl::OkStatus());
  EXPECT_EQ(ValidateModel(ModelOn(kVariables, {}, 2, 1, {.kind = Partitioning::Kind::kFixed, .shards = 3})),
            absl::OkStatus());
  EXPECT_EQ(ValidateModel(ModelOn({{.name = "none", .shape = {0, int64_t{1} << 40}}}, {})), absl::OkStatus());
}

TEST(ModelTest, HostileModelsAreRefused) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const std::vector<std::pair<const char*, std::function<void(StoreModel&)>>> changes = {
      {"negative extent", [](StoreModel& m) { m.variables[0].shape = {-1}; }},
      {"overflowing shape",
       [](StoreModel& m) {
         m.variables[0].shape = {kMax, kMax};
       }},
      {"overflow to zero",
       [](StoreModel& m) {
         m.variables[0].shape = {int64_t{1} << 32, int64_t{1} << 32};
       }},
      {"trainable integers", [](StoreModel& m) { m.variables[0].dtype = DType::kInt64; }},
      {"unknown type", [](StoreModel& m) { m.variables[0].dtype = static_cast<DType>(99); }},
      {"type zero", [](StoreModel& m) { m.variables[0].dtype = static_cast<DType>(0); }},
      {"unknown kind", [](StoreModel& m) { m.variables[0].kind = static_cast<VariableKind>(0); }},
      {"trainable halves", [](StoreModel& m) { m.variables[0].dtype = DType::kFloat16; }},
      {"variable below", [](StoreModel& m) { m.slices[0].variable = -1; }},
      {"variable above", [](StoreModel& m) { m.slices[0].variable = 3; }},
      {"offset below", [](StoreModel& m) { m.slices[1].offset = -1; }},
      {"offset at the limit below", [](StoreModel& m) { m.slices[1].offset = kMin; }},
      {"offset beyond", [](StoreModel& m) { m.slices[1].offset = 1; }},
      {"offset at the limit above", [](StoreModel& m) { m.slices[1].offset = kMax; }},
      {"elements that are not the shape's", [](StoreModel& m) { m.slices[1].elements = 99; }},
      {"bytes that are not the elements'", [](StoreModel& m) { m.slices[1].bytes = 399; }},
      {"shape beyond the variable",
       [](StoreModel& m) {
         m.slices[1].shape = {101};
         m.slices[1].elements = 101;
         m.slices[1].bytes = 404;
       }},
      {"unknown rule", [](StoreModel& m) { m.optimizer.rule.kind = static_cast<RuleKind>(77); }},
      {"rule without sense", [](StoreModel& m) { m.optimizer.rule.learning_rate = -1; }},
  };
  for (const auto& [what, change] : changes) {
    StoreModel model = ModelOn(kVariables, {});
    ASSERT_EQ(ValidateModel(model), absl::OkStatus());
    change(model);
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateModel(model))) << what << ": " << ValidateModel(model);
  }
}

}  // namespace
}  // namespace muster::model_test
