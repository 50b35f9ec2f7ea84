#include "muster/launch/results/plot_axis.h"

#include <gmock/gmock.h>

namespace muster::plot_axis_test {
namespace {

using ::testing::AllOf, ::testing::Each, ::testing::ElementsAre, ::testing::Ge, ::testing::Le;

std::vector<std::string> Texts(const PlotAxis& axis) {
  std::vector<std::string> texts;
  for (const PlotTick& tick : axis.Ticks()) texts.push_back(tick.text);
  return texts;
}

std::vector<double> Places(const PlotAxis& axis) {
  std::vector<double> places;
  for (const PlotTick& tick : axis.Ticks()) places.push_back(tick.at);
  return places;
}

TEST(PlotAxis, NumbersNearEachOtherAreLinear) {
  const PlotAxis axis({"4", "1", "2"});
  EXPECT_EQ(axis.kind(), PlotAxis::Kind::kLinear);
  EXPECT_NEAR(axis.Place("2.5"), 0.5, 1e-9);
  EXPECT_LT(axis.Place("1"), 0.1);
  EXPECT_GT(axis.Place("4"), 0.9);
  EXPECT_THAT(Texts(axis), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(Places(axis), Each(AllOf(Ge(0), Le(1))));
}

TEST(PlotAxis, NumbersThatSpanDecadesAreLogarithmic) {
  const PlotAxis axis({"0.1", "0.001", "1e-2"});
  EXPECT_EQ(axis.kind(), PlotAxis::Kind::kLogarithmic);
  EXPECT_NEAR(axis.Place("0.01"), 0.5, 1e-9);
  EXPECT_THAT(Texts(axis), ElementsAre("0.001", "0.01", "0.1"));
  EXPECT_EQ(PlotAxis({"0.1", "0.001"}, /*may_be_logarithmic=*/false).kind(), PlotAxis::Kind::kLinear);
  EXPECT_EQ(PlotAxis({"0", "1000"}).kind(), PlotAxis::Kind::kLinear) << "there is no logarithm of 0";
  EXPECT_EQ(PlotAxis({"-1", "1000"}).kind(), PlotAxis::Kind::kLinear);
  EXPECT_LE(PlotAxis({"1e-300", "1e300"}).Ticks().size(), 12U);
}

TEST(PlotAxis, AnythingElseIsWords) {
  const PlotAxis axis({"sgd", "adam", "1", "adam"});
  EXPECT_EQ(axis.kind(), PlotAxis::Kind::kWords);
  EXPECT_THAT(Texts(axis), ElementsAre("1", "adam", "sgd"));
  EXPECT_NEAR(axis.Place("adam"), 0.5, 1e-9);
  EXPECT_EQ(PlotAxis({"nan", "1"}).kind(), PlotAxis::Kind::kWords);
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back("word " + std::to_string(i));
  EXPECT_LE(PlotAxis(many).Ticks().size(), 12U);
}

TEST(PlotAxis, OneValueIsInTheMiddle) {
  EXPECT_NEAR(PlotAxis({"7", "7"}).Place("7"), 0.5, 1e-9);
  EXPECT_NEAR(PlotAxis({"0"}).Place("0"), 0.5, 1e-9);
  EXPECT_NEAR(PlotAxis({"-3"}).Place("-3"), 0.5, 1e-9);
}

TEST(PlotAxis, TheLargestNumbersHaveTheirPlaces) {
  const PlotAxis axis({"-1.5e308", "1.5e308"});
  EXPECT_NEAR(axis.Place("0"), 0.5, 1e-9);
}

}  // namespace
}  // namespace muster::plot_axis_test
