#include "muster/algo/choice/algorithm_table.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"

namespace muster::algorithm_table_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

std::vector<std::string> Parameters(const std::string& name) {
  std::vector<std::string> parameters;
  for (const ParameterInfo& parameter : FindAlgorithm(name)->parameters)
    parameters.push_back(absl::StrCat(parameter.name, "=", parameter.standard));
  return parameters;
}

TEST(AlgorithmTable, HasEveryOneInTheOrderOfTheDocumentation) {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : AlgorithmTable()) names.emplace_back(info.name);
  EXPECT_THAT(names, ElementsAre("hogwild", "downpour", "downpour_easy", "agn", "adag", "dynsgd", "staleness_aware",
                                 "ssp", "synchronous", "synchronous_different_rates", "sagn", "easgd", "aeasgd",
                                 "aeamsgd", "diloco", "pipelined", "all_reduce"));
}

TEST(AlgorithmTable, EveryOneSaysAll) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    EXPECT_THAT(info.summary, Not(IsEmpty())) << info.name;
    EXPECT_THAT(std::string(info.summary), Not(HasSubstr("\n"))) << info.name;
    EXPECT_THAT(std::string(info.formula), HasSubstr("←")) << info.name;
    EXPECT_THAT(info.reference, Not(IsEmpty())) << info.name;
    EXPECT_THAT(info.advice, Not(IsEmpty())) << info.name;
    std::set<std::string> parameters;
    for (const ParameterInfo& parameter : info.parameters) {
      EXPECT_TRUE(parameters.insert(std::string(parameter.name)).second) << info.name << " " << parameter.name;
      EXPECT_THAT(parameter.standard, Not(IsEmpty())) << info.name << " " << parameter.name;
      EXPECT_THAT(parameter.meaning, Not(IsEmpty())) << info.name << " " << parameter.name;
    }
    EXPECT_TRUE(parameters.contains("server_rule")) << info.name;
    EXPECT_TRUE(parameters.contains("learning_rate")) << info.name;
    EXPECT_EQ(info.needs_ps, info.name != "all_reduce");
  }
}

TEST(AlgorithmTable, NoNameStandsForTwo) {
  std::set<std::string> names;
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    EXPECT_TRUE(names.insert(std::string(info.name)).second) << info.name;
    for (const absl::string_view alias : info.aliases) EXPECT_TRUE(names.insert(std::string(alias)).second) << alias;
  }
  for (const std::string& name : names) EXPECT_NE(FindAlgorithm(name), nullptr) << name;
}

TEST(AlgorithmTable, AParameterMeansTheSameKindOfTextEverywhere) {
  std::map<std::string, ParameterKind> kinds;
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    for (const ParameterInfo& parameter : info.parameters) {
      const auto kind = kinds.emplace(std::string(parameter.name), parameter.kind).first;
      EXPECT_EQ(kind->second, parameter.kind) << info.name << " " << parameter.name;
    }
  }
}

TEST(AlgorithmTable, ThePublishedDefaults) {
  EXPECT_THAT(Parameters("downpour"), ElementsAre("window=5", "fetch_window=(as window)", "worker_rule=adagrad",
                                                  "server_rule=adagrad", "learning_rate=(of worker_rule)"));
  EXPECT_THAT(Parameters("agn"),
              ElementsAre("window=12", "worker_rule=sgd", "server_rule=add", "learning_rate=(of worker_rule)"));
  EXPECT_THAT(
      Parameters("diloco"),
      ElementsAre("window=500", "replicas_to_aggregate=(as many as workers)", "worker_rule=adamw",
                  "server_rule=momentum:learning_rate=0.7,momentum=0.9,nesterov=1", "learning_rate=(of worker_rule)"));
  EXPECT_THAT(Parameters("aeamsgd"),
              ElementsAre("window=32", "alpha=(0.9 / workers)", "rho=(not set)", "momentum=0.9", "worker_rule=sgd",
                          "server_rule=add", "learning_rate=(of worker_rule)"));
  EXPECT_THAT(Parameters("all_reduce"), ElementsAre("server_rule=sgd", "learning_rate=(of server_rule)"));
}

TEST(AlgorithmTable, NamesAreFoundAsUsersWriteThem) {
  const auto found = [](const std::string& name) {
    const AlgorithmInfo* info = FindAlgorithm(name);
    return info == nullptr ? std::string() : std::string(info->name);
  };
  EXPECT_EQ(found("Downpour-Easy"), "downpour_easy");
  EXPECT_EQ(found("staleness-aware"), "staleness_aware");
  EXPECT_EQ(found("EAMSGD"), "aeamsgd");
  EXPECT_EQ(found("async"), "hogwild");
  EXPECT_EQ(found("sync"), "synchronous");
  EXPECT_EQ(found("synchronous_sgd"), "synchronous");
  EXPECT_EQ(found("synchronous_sgd_different_learning_rates"), "synchronous_different_rates");
  EXPECT_EQ(found("allreduce"), "all_reduce");
  EXPECT_EQ(found("hogwil"), "");
  EXPECT_EQ(found(""), "");
}

TEST(AlgorithmTable, TheNearestNameIsForTypingMistakes) {
  EXPECT_EQ(NearestAlgorithm("downpuor"), "downpour");
  EXPECT_EQ(NearestAlgorithm("Diloko"), "diloco");
  EXPECT_EQ(NearestAlgorithm("hog-wild"), "hogwild");
  EXPECT_EQ(NearestAlgorithm("asinc"), "async");
  EXPECT_EQ(NearestAlgorithm("federated_averaging"), "");
  EXPECT_THAT(std::string(UnknownAlgorithm("dilocoo").message()),
              AllOf(HasSubstr("unknown algorithm \"dilocoo\" (nearest: diloco); accepted: hogwild, downpour, "),
                    HasSubstr("pipelined, all_reduce")));
  EXPECT_TRUE(absl::IsInvalidArgument(UnknownAlgorithm("x")));
}

TEST(AlgorithmTable, TheDocumentationHasARowForEach) {
  std::ifstream file(SourceFolder() + "/docs/algorithms.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t at = 0;
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    const size_t row = page.find(absl::StrCat("\n| `", info.name, "` | "), at);
    ASSERT_NE(row, std::string::npos) << info.name << " isn't there, or stands in another place";
    at = row;
  }
}

}  // namespace
}  // namespace muster::algorithm_table_test
