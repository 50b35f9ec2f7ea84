#include "muster/launch/hosts/spark_setting.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/hosts/wait_text.h"

namespace muster {
namespace {

constexpr int kMostSparkNodes = 100000;
constexpr char kConfBeginning[] = "conf.";
constexpr absl::Duration kLeastSparkStart = absl::Seconds(10);
constexpr absl::Duration kMostSparkStart = absl::Hours(24 * 365);

bool IsOneWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '\'' && c != '\\';
  });
}

absl::Status NotOfSpark(const std::string& name, const std::string& value, std::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", OneLine(value), "'; accepted: ", AbslView(accepted)));
}

absl::Status TakeConf(SparkSetting& spark, const std::string& name, const std::optional<std::string>& value) {
  const std::string key = name.substr(sizeof kConfBeginning - 1);
  if (!IsOneWord(key) || !absl::StartsWith(key, "spark.") || absl::StrContains(key, '='))
    return NotOfSpark("the name of a setting", key, "one of Spark's, as spark.executor.memory");
  if (key == "spark.master") return NotOfSpark(name, value.value_or(""), "address, in its place");
  if (key == "spark.submit.deployMode" && value.value_or("client") != "client")
    return NotOfSpark(name, *value,
                      "client: the job's driver runs on the machine that submits it, beside the experiment's "
                      "supervisor and its files");
  if (value.has_value() && absl::StrContains(*value, '\n')) return NotOfSpark(name, *value, "a text of one line");
  if (value.has_value())
    spark.conf[key] = *value;
  else
    spark.conf.erase(key);
  return absl::OkStatus();
}

absl::Status TakeSparkStart(absl::Duration& start, const std::optional<std::string>& value) {
  start = SparkSetting().start_timeout;
  if (!value.has_value()) return absl::OkStatus();
  const std::optional<absl::Duration> wait = ParseWait(*value, kLeastSparkStart, kMostSparkStart);
  if (!wait.has_value())
    return NotOfSpark("start_timeout", *value,
                      absl::StrCat("a time from ", absl::FormatDuration(kLeastSparkStart), ", as 10m, 24h or seconds"));
  start = *wait;
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeSparkSetting(SparkSetting& spark, const std::string& name, const std::optional<std::string>& value) {
  if (absl::StartsWith(name, kConfBeginning)) return TakeConf(spark, name, value);
  if (name == "nodes") {
    const std::string number = value.value_or("1");
    if (absl::SimpleAtoi(number, &spark.nodes) && spark.nodes >= 1 && spark.nodes <= kMostSparkNodes)
      return absl::OkStatus();
    return NotOfSpark(name, number, "a whole number from 1");
  }
  if (name == "address" || name == "python") {
    if (value.has_value() && !IsOneWord(*value))
      return NotOfSpark(name, *value,
                        name == "python" ? "a program, as /opt/spark/bin/python3"
                                         : "a master, as spark://HOST:7077, yarn, k8s://… or local-cluster[2,1,1024]");
    (name == "address" ? spark.address : spark.python) = value.value_or("");
    return absl::OkStatus();
  }
  if (name == "start_timeout") return TakeSparkStart(spark.start_timeout, value);
  if (name == "conf") {
    if (value.has_value()) return NotOfSpark(name, *value, "a map from Spark's settings to values, or conf.NAME=VALUE");
    spark.conf.clear();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", OneLine(name), "' is unknown", NearestHint(name, {"nodes", "address", "python", "start_timeout", "conf"}),
      "; accepted: nodes, address, python, start_timeout and conf.NAME"));
}

}  // namespace muster
