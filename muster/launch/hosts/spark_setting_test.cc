#include "muster/launch/hosts/spark_setting.h"

#include <gmock/gmock.h>

namespace muster::spark_setting_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

std::string WhyNot(const std::string& name, const std::optional<std::string>& value) {
  SparkSetting spark;
  return std::string(TakeSparkSetting(spark, name, value).message());
}

TEST(SparkSettingTest, TakesWhatAJobIsAskedFor) {
  SparkSetting spark;
  EXPECT_TRUE(TakeSparkSetting(spark, "nodes", "3").ok());
  EXPECT_TRUE(TakeSparkSetting(spark, "address", "local-cluster[2,1,1024]").ok());
  EXPECT_TRUE(TakeSparkSetting(spark, "python", "/opt/spark/bin/python3").ok());
  EXPECT_TRUE(TakeSparkSetting(spark, "start_timeout", "2h").ok());
  EXPECT_TRUE(TakeSparkSetting(spark, "conf.spark.yarn.queue", "research and more").ok());
  EXPECT_TRUE(TakeSparkSetting(spark, "conf.spark.submit.deployMode", "client").ok());
  EXPECT_TRUE(TakeSparkSetting(spark, "conf.spark.submit.deployMode", std::nullopt).ok());
  EXPECT_EQ(spark.nodes, 3);
  EXPECT_EQ(spark.address, "local-cluster[2,1,1024]");
  EXPECT_EQ(spark.start_timeout, absl::Hours(2));
  EXPECT_THAT(spark.conf, ElementsAre(Pair("spark.yarn.queue", "research and more")));
  for (const char* name : {"nodes", "address", "python", "start_timeout", "conf.spark.yarn.queue"})
    EXPECT_TRUE(TakeSparkSetting(spark, name, std::nullopt).ok());
  EXPECT_EQ(spark, SparkSetting());
}

TEST(SparkSettingTest, WhatIsNotAcceptedIsNamed) {
  EXPECT_THAT(WhyNot("nodes", "0"), HasSubstr("nodes is '0'; accepted: a whole number from 1"));
  EXPECT_THAT(WhyNot("address", "two words"), HasSubstr("a master, as spark://HOST:7077"));
  EXPECT_THAT(WhyNot("python", ""), HasSubstr("a program, as"));
  EXPECT_THAT(WhyNot("start_timeout", "9s"), HasSubstr("a time from 10s"));
  EXPECT_THAT(WhyNot("start_timeout", "soon"), HasSubstr("a time from 10s"));
  EXPECT_THAT(WhyNot("conf.executor.memory", "1g"), HasSubstr("one of Spark's, as spark.executor.memory"));
  EXPECT_THAT(WhyNot("conf.spark.a=b", "1g"), HasSubstr("one of Spark's"));
  EXPECT_THAT(WhyNot("conf.spark.master", "yarn"), HasSubstr("accepted: address, in its place"));
  EXPECT_THAT(WhyNot("conf.spark.submit.deployMode", "cluster"),
              HasSubstr("accepted: client: the job's driver runs on the machine that submits it"));
  EXPECT_THAT(WhyNot("conf.spark.a", "1\n2"), HasSubstr("a text of one line"));
  EXPECT_THAT(WhyNot("node", "1"), HasSubstr("'node' is unknown (nearest: nodes); accepted: nodes, address"));
}

}  // namespace
}  // namespace muster::spark_setting_test
