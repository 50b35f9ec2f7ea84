#include "muster/launch/spec/parameters.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::parameters_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair,
    ::testing::SizeIs;

ParameterSpec Listed(const std::string& name, const std::vector<std::string>& values) {
  return {.name = name, .values = values};
}

ParameterSpec Ranged(const std::string& name, const ParameterSpec::Range& range) {
  const auto values = ValuesOfRange(range).value();
  return {.name = name, .values = values, .range = range};
}

template <typename T>
std::string MistakeOf(const absl::StatusOr<T>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

// --- names ---

TEST(ParameterName, BecomesAnEnvironmentVariable) {
  EXPECT_EQ(EnvironmentNameOf("num-layers"), "NUM_LAYERS");
  EXPECT_EQ(EnvironmentNameOf("learningRate_2"), "LEARNINGRATE_2");
}

TEST(ParameterName, MustBeOneAndThePatternSaysTheSame) {
  const std::regex pattern(kParameterNamePattern);
  for (const char* name : {"a", "learning-rate", "dropout_keep_prob", "L2", "x-"}) {
    EXPECT_TRUE(ValidateParameterName(name).ok()) << name;
    EXPECT_TRUE(std::regex_search(name, pattern)) << name;
  }
  for (const std::string& name : {std::string(), std::string("2x"), std::string("-x"), std::string("_x"),
                                  std::string("a b"), std::string("a.b"), std::string("é"), std::string(101, 'a')}) {
    EXPECT_THAT(std::string(ValidateParameterName(name).message()), HasSubstr("accepted: letters, digits")) << name;
    EXPECT_FALSE(std::regex_search(name, pattern)) << name;
  }
}

TEST(ParameterName, MayNotHideWhatMeansSomethingElse) {
  for (const char* name :
       {"path", "HOME", "ld-library-path", "project", "output-dir", "tf_config", "muster-home", "cuda-visible-devices"})
    EXPECT_THAT(std::string(ValidateParameterName(name).message()), HasSubstr("means something already")) << name;
  EXPECT_TRUE(ValidateParameterName("path-length").ok());
  EXPECT_TRUE(ValidateParameterName("rank").ok());
  EXPECT_TRUE(IsExperimentVariable("EXPERIMENT_ID", false));
  EXPECT_FALSE(IsExperimentVariable("PATH", true));
  EXPECT_TRUE(IsExperimentVariable("RANK", true));
  EXPECT_FALSE(IsExperimentVariable("RANK", false));
}

// --- ranges ---

std::vector<std::string> Values(const ParameterSpec::Range& range) { return ValuesOfRange(range).value(); }

TEST(ValuesOfRange, WholeNumbersStayWhole) {
  EXPECT_THAT(Values({.min = 1, .max = 4, .step = 1, .whole = true}), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(Values({.min = -2, .max = 3, .step = 2, .whole = true}), ElementsAre("-2", "0", "2"));
  EXPECT_THAT(Values({.min = 100000, .max = 300000, .step = 100000, .whole = true}),
              ElementsAre("100000", "200000", "300000"));
  EXPECT_THAT(Values({.min = 5, .max = 5, .step = 1, .whole = true}), ElementsAre("5"));
}

TEST(ValuesOfRange, MaxIsAmongThemWhateverBinaryFractionsDo) {
  EXPECT_THAT(Values({.min = 0.1, .max = 0.3, .step = 0.1}), ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(Values({.min = 0, .max = 1, .step = 0.1}),
              ElementsAre("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"));
  EXPECT_THAT(Values({.min = -0.2, .max = 0.2, .step = 0.1}), ElementsAre("-0.2", "-0.1", "0", "0.1", "0.2"));
  EXPECT_THAT(Values({.min = -0.3, .max = 0.1, .step = 0.1}), ElementsAre("-0.3", "-0.2", "-0.1", "0", "0.1"));
  EXPECT_THAT(Values({.min = 0.00001, .max = 0.00003, .step = 0.00001}), ElementsAre("1e-05", "2e-05", "3e-05"));
  EXPECT_THAT(Values({.min = 0.5, .max = 0.5, .step = 7}), ElementsAre("0.5"));
}

TEST(ValuesOfRange, MaxIsNotAmongThemWhereTheStepMissesIt) {
  EXPECT_THAT(Values({.min = 0, .max = 0.95, .step = 0.25}), ElementsAre("0", "0.25", "0.5", "0.75"));
  EXPECT_THAT(Values({.min = 1, .max = 2, .step = 5, .whole = true}), ElementsAre("1"));
}

TEST(ValuesOfRange, LogarithmicStepsAreFactors) {
  EXPECT_THAT(Values({.min = 0.001, .max = 1, .step = 10, .logarithmic = true}),
              ElementsAre("0.001", "0.01", "0.1", "1"));
  EXPECT_THAT(Values({.min = 16, .max = 130, .step = 2, .logarithmic = true, .whole = true}),
              ElementsAre("16", "32", "64", "128"));
}

TEST(ValuesOfRange, RefusesWhatIsNone) {
  EXPECT_THAT(MistakeOf(ValuesOfRange({.min = 2, .max = 1, .step = 1})), HasSubstr("max is below min"));
  EXPECT_THAT(MistakeOf(ValuesOfRange({.min = 1, .max = 2, .step = 0})), HasSubstr("a step above 0"));
  EXPECT_THAT(MistakeOf(ValuesOfRange({.min = 1, .max = 2, .step = -1})), HasSubstr("a step above 0"));
  EXPECT_THAT(MistakeOf(ValuesOfRange({.min = 1, .max = 2, .step = 1, .logarithmic = true})),
              HasSubstr("a step above 1"));
  EXPECT_THAT(MistakeOf(ValuesOfRange({.min = 0, .max = 2, .step = 10, .logarithmic = true})),
              HasSubstr("a min above 0"));
  EXPECT_THAT(MistakeOf(ValuesOfRange({.min = 0, .max = 1, .step = 1e-6})), HasSubstr("more than 10000 values"));
  EXPECT_THAT(MistakeOf(ValuesOfRange({.min = -1e308, .max = 1e308, .step = 1e-6})), HasSubstr("more than 10000"));
}

// --- grids ---

TEST(AllCombinations, TheLastParameterVariesFastest) {
  const auto runs = AllCombinations({Listed("b", {"1", "2"}), Listed("a", {"x", "y"})}).value();
  EXPECT_THAT(runs,
              ElementsAre(ElementsAre(Pair("a", "x"), Pair("b", "1")), ElementsAre(Pair("a", "y"), Pair("b", "1")),
                          ElementsAre(Pair("a", "x"), Pair("b", "2")), ElementsAre(Pair("a", "y"), Pair("b", "2"))));
}

TEST(AllCombinations, WithoutParametersThereIsOneRun) {
  EXPECT_THAT(AllCombinations({}).value(), ElementsAre(IsEmpty()));
}

TEST(AllCombinations, HaveALimit) {
  const std::vector<std::string> hundred(100, "x");
  EXPECT_THAT(AllCombinations({Listed("a", hundred), Listed("b", hundred)}).value(), SizeIs(10'000));
  EXPECT_THAT(MistakeOf(AllCombinations({Listed("a", hundred), Listed("b", hundred), Listed("c", {"1", "2"})})),
              HasSubstr("more than 10000 runs"));
}

// --- random search ---

TEST(RandomCombinations, AreTheSameForASeed) {
  const std::vector<ParameterSpec> parameters = {Ranged("lr", {.min = 0.1, .max = 0.9, .step = 0.1}),
                                                 Listed("depth", {"1", "2", "3"})};
  const auto runs = RandomCombinations(parameters, 20, 7).value();
  EXPECT_THAT(runs, SizeIs(20));
  EXPECT_EQ(runs, RandomCombinations(parameters, 20, 7).value());
  EXPECT_NE(runs, RandomCombinations(parameters, 20, 8).value());
  // A larger count begins with the same runs.
  const auto more = RandomCombinations(parameters, 30, 7).value();
  EXPECT_TRUE(std::equal(runs.begin(), runs.end(), more.begin()));
}

double Read(const std::string& text) {
  double value = NAN;
  EXPECT_TRUE(absl::SimpleAtod(text, &value)) << text;
  return value;
}

TEST(RandomCombinations, DrawEvenlyBetweenRealBounds) {
  const auto runs = RandomCombinations({Ranged("x", {.min = 2, .max = 4, .step = 1.5})}, 2000, 1).value();
  ASSERT_THAT(runs, SizeIs(2000));
  int low = 0;
  for (const ParameterValues& run : runs) {
    const double x = Read(run.at("x"));
    EXPECT_GE(x, 2);
    EXPECT_LE(x, 4);
    if (x < 2.5) ++low;
  }
  EXPECT_NEAR(low, 500, 80);
}

TEST(RandomCombinations, DrawEvenlyOfTheLogarithmWhereThatIsSaid) {
  const auto runs =
      RandomCombinations({Ranged("lr", {.min = 1e-4, .max = 1, .step = 10, .logarithmic = true})}, 2000, 1).value();
  int low = 0;
  for (const ParameterValues& run : runs) {
    const double lr = Read(run.at("lr"));
    EXPECT_GE(lr, 1e-4);
    EXPECT_LE(lr, 1);
    if (lr < 1e-3) ++low;
  }
  EXPECT_NEAR(low, 500, 80);
}

TEST(RandomCombinations, AreWrittenWithSixDigits) {
  const auto runs = RandomCombinations({Ranged("x", {.min = 0.1, .max = 0.9, .step = 0.1})}, 100, 3).value();
  for (const ParameterValues& run : runs) EXPECT_LE(run.at("x").size(), 8U) << run.at("x");
}

TEST(RandomCombinations, KeepToTheStepOfWholeNumbers) {
  const auto runs = RandomCombinations({Ranged("n", {.min = 10, .max = 40, .step = 10, .whole = true})}, 4, 5).value();
  std::set<std::string> seen;
  for (const ParameterValues& run : runs) seen.insert(run.at("n"));
  EXPECT_THAT(seen, ElementsAre("10", "20", "30", "40"));
}

TEST(RandomCombinations, NoneComesTwice) {
  const std::vector<ParameterSpec> parameters = {Listed("a", {"1", "2", "3"}), Listed("b", {"x", "y", "z", "w"})};
  const auto runs = RandomCombinations(parameters, 9, 1).value();
  EXPECT_THAT(runs, SizeIs(9));
  EXPECT_THAT(std::set<ParameterValues>(runs.begin(), runs.end()), SizeIs(9));
  // Only 12 combinations exist.
  const auto all = RandomCombinations(parameters, 100, 1).value();
  EXPECT_THAT(all, SizeIs(12));
  EXPECT_THAT(std::set<ParameterValues>(all.begin(), all.end()), SizeIs(12));
  EXPECT_NE(all, AllCombinations(parameters).value());
}

TEST(RandomCombinations, OfMoreThanCanBeListedNoneComesTwiceEither) {
  std::vector<std::string> hundred;
  for (int i = 0; i < 100; ++i) hundred.push_back(absl::StrCat(i));
  const auto runs =
      RandomCombinations({Listed("a", hundred), Listed("b", hundred), Listed("c", hundred)}, 5000, 1).value();
  EXPECT_THAT(runs, SizeIs(5000));
  EXPECT_THAT(std::set<ParameterValues>(runs.begin(), runs.end()), SizeIs(5000));
}

TEST(RandomCombinations, OfBoundsThatAreOneThereIsOne) {
  EXPECT_THAT(RandomCombinations({Ranged("x", {.min = 0.5, .max = 0.5, .step = 1})}, 10, 1).value(),
              ElementsAre(ElementsAre(Pair("x", "0.5"))));
}

TEST(RandomCombinations, CountIsOfRuns) {
  for (const int count : {0, -1, 10'001})
    EXPECT_THAT(MistakeOf(RandomCombinations({Listed("a", {"1"})}, count, 1)), HasSubstr("accepted are 1 to 10000"));
}

// --- --param ---

TEST(WithOverrides, ReplacesAndAdds) {
  const auto changed = WithOverrides({Ranged("lr", {.min = 1, .max = 2, .step = 1}), Listed("depth", {"1", "2"})},
                                     {"lr=0.10", "batch-size=[32, 64,\"a,b\"]", "text=a=b", "none="})
                           .value();
  ASSERT_THAT(changed, SizeIs(5));
  EXPECT_EQ(changed[0].name, "lr");
  EXPECT_THAT(changed[0].values, ElementsAre("0.10"));
  EXPECT_FALSE(changed[0].range.has_value());
  EXPECT_THAT(changed[1].values, ElementsAre("1", "2"));
  EXPECT_EQ(changed[2].name, "batch-size");
  EXPECT_THAT(changed[2].values, ElementsAre("32", "64", "a,b"));
  EXPECT_THAT(changed[3].values, ElementsAre("a=b"));
  EXPECT_THAT(changed[4].values, ElementsAre(""));
}

TEST(WithOverrides, RefusesAnEmptyValueForNumbers) {
  const std::vector<ParameterSpec> parameters = {Ranged("lr", {.min = 1, .max = 2, .step = 1}), Listed("depth", {"1"}),
                                                 Listed("data", {"1", "all"})};
  EXPECT_EQ(MistakeOf(WithOverrides(parameters, {"depth="})),
            "--param depth= has no value, and the file has numbers; accepted: a number, or no --param depth");
  EXPECT_THAT(MistakeOf(WithOverrides(parameters, {"lr=[1,\"\"]"})), HasSubstr("--param lr= has no value"));
  EXPECT_THAT(WithOverrides(parameters, {"data="}).value()[2].values, ElementsAre("")) << "text may be empty";
}

TEST(WithOverrides, SaysWhatIsAccepted) {
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"lr"})), AllOf(HasSubstr("\"lr\""), HasSubstr("NAME=VALUE")));
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"=1"})), HasSubstr("isn't a parameter name"));
  EXPECT_EQ(MistakeOf(WithOverrides({{.name = "learning-rate", .values = {"1"}}}, {"learning_rate=[0.1,0.2]"})),
            "--param learning_rate: the parameter is called learning-rate; did you mean --param "
            "'learning-rate=[0.1,0.2]'?");
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"path=1"})), HasSubstr("means something already"));
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"lr=[]"})), HasSubstr("at least one"));
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"lr=[1"})), HasSubstr("NAME=[VALUE,VALUE]"));
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"lr=[[1]]"})), HasSubstr("NAME=[VALUE,VALUE]"));
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"lr=[1,{]"})), HasSubstr("NAME=[VALUE,VALUE]"));
  EXPECT_THAT(MistakeOf(WithOverrides({}, {"lr=1", "lr=2"})), AllOf(HasSubstr("twice"), HasSubstr("lr=[VALUE,VALUE]")));
  EXPECT_THAT(MistakeOf(WithOverrides({Listed("num-layers", {"1"})}, {"num_layers=2"})),
              HasSubstr("did you mean --param num-layers=2?"));
}

// --- commands ---

TEST(FillTemplate, PutsValuesIn) {
  const ParameterValues values = {{"num-layers", "4"}, {"lr", "0.1"}};
  EXPECT_EQ(FillTemplate("train --n {{ num-layers }} --lr={{lr}} {{  lr\t}}", values).value(),
            "train --n 4 --lr=0.1 0.1");
  EXPECT_EQ(FillTemplate("nothing { to } do", values).value(), "nothing { to } do");
  EXPECT_EQ(FillTemplate("'{\"a\": {{lr}}}'", values).value(), "'{\"a\": 0.1}'");
  EXPECT_EQ(FillTemplate("", {}).value(), "");
}

TEST(FillTemplate, RefersToWhatAShellWouldTakeApart) {
  const auto filled = [](const std::string& value) { return FillTemplate("{{ x-y }}", {{"x-y", value}}).value(); };
  EXPECT_EQ(filled("a/b_c-d.e:1,2@x+5"), "a/b_c-d.e:1,2@x+5");
  for (const char* value : {"two words", "$HOME; rm -r *", "it's", "", "~", "{{ y }}"})
    EXPECT_EQ(filled(value), "\"${MUSTER_VALUE_X_Y}\"") << value;
}

TEST(FillTemplate, NamesLineAndPlaceOfAValueThatCanNotStandThere) {
  EXPECT_THAT(MistakeOf(FillTemplate("cat > file <<'E'\nit is {{ x }}\nE\n", {{"x", "$(rm -r /)"}})),
              AllOf(HasSubstr("{{ x }} with the value \"$(rm -r /)\" in line 2 of the command"),
                    HasSubstr("in a here-document whose delimiter is in quotes; accepted: <<E without quotes")));
}

TEST(FillTemplate, NamesWhatIsMissing) {
  EXPECT_THAT(MistakeOf(FillTemplate("run {{ num-layer }}", {{"num-layers", "4"}, {"lr", "1"}})),
              AllOf(HasSubstr("{{ num-layer }}: there is no such parameter (nearest: num-layers)"),
                    HasSubstr("accepted: lr, num-layers, or a new one"), HasSubstr("--param num-layer=VALUE")));
  EXPECT_THAT(MistakeOf(FillTemplate("{{ undefined }}", {})), HasSubstr("--param undefined=VALUE"));
}

TEST(FillTemplate, ANameThatDiffersByADashIsAskedFor) {
  EXPECT_EQ(MistakeOf(FillTemplate("{{ learning-rate }}", {{"learning_rate", "0.1"}})),
            "{{ learning-rate }}: the parameter is called learning_rate; did you mean {{ learning_rate }}?");
}

TEST(TemplateNames, AreThoseInBraces) {
  EXPECT_THAT(TemplateNames("{{ a }} {{b-c}} {{ a }}").value(), ElementsAre("a", "b-c", "a"));
  EXPECT_THAT(TemplateNames("none").value(), IsEmpty());
}

TEST(TemplateNames, RefusesOpenBracesAndOtherThingsInThem) {
  EXPECT_THAT(MistakeOf(TemplateNames("run {{ lr")), AllOf(HasSubstr("without \"}}\""), HasSubstr("{{ lr")));
  EXPECT_THAT(MistakeOf(TemplateNames("run {{ }}")), HasSubstr("no parameter's name"));
  EXPECT_THAT(MistakeOf(TemplateNames("run {{ a b }}")), HasSubstr("no parameter's name"));
  EXPECT_THAT(MistakeOf(TemplateNames("{{ .Name }}")), HasSubstr("{'{'"));
}

}  // namespace
}  // namespace muster::parameters_test
