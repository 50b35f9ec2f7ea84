#include "muster/train/session/session_config.h"

#include <gmock/gmock.h>

#include <cmath>

#include "muster/base/wrong_configuration.h"

namespace muster::session_config_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

std::string ErrorOf(const SessionConfig& config) {
  const absl::Status status = CheckSessionConfig(config);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(IsWrongConfiguration(status)) << "exit code 2";
  return std::string(status.message());
}

TEST(SessionConfigTest, TheDefaultsAreTensorFlows) {
  const SessionConfig config;
  EXPECT_FALSE(config.allow_soft_placement);
  EXPECT_FALSE(config.log_device_placement);
  EXPECT_EQ(CheckSessionConfig(config), absl::OkStatus());
}

TEST(SessionConfigTest, WhatMeansNothingIsNamedWithWhatIsAccepted) {
  for (const double fraction : {-0.1, 1.5, std::nan("")})
    EXPECT_THAT(ErrorOf({.gpu_options = {.per_process_gpu_memory_fraction = fraction}}),
                AllOf(HasSubstr("per_process_gpu_memory_fraction"), HasSubstr("accepted: 0 (no limit) to 1")));
  EXPECT_THAT(ErrorOf({.gpu_options = {.visible_device_list = "0;1"}}),
              AllOf(HasSubstr("visible_device_list \"0;1\""), HasSubstr("accepted")));
  EXPECT_THAT(ErrorOf({.intra_op_parallelism_threads = -1}),
              AllOf(HasSubstr("intra_op_parallelism_threads is -1"), HasSubstr("accepted")));
  EXPECT_THAT(ErrorOf({.inter_op_parallelism_threads = -2}),
              AllOf(HasSubstr("inter_op_parallelism_threads is -2"), HasSubstr("accepted")));
  EXPECT_THAT(ErrorOf({.device_filters = {"/job:ps", "/job:ps/task:x"}}),
              AllOf(HasSubstr("device_filters [1]"), HasSubstr("/job:ps/task:x"), HasSubstr("accepted")));
}

TEST(SessionConfigTest, WhatIsAccepted) {
  EXPECT_EQ(
      CheckSessionConfig(
          {.allow_soft_placement = true,
           .log_device_placement = true,
           .gpu_options = {.allow_growth = true, .per_process_gpu_memory_fraction = 1, .visible_device_list = "1,0"},
           .intra_op_parallelism_threads = 2,
           .inter_op_parallelism_threads = 1,
           .device_filters = {"/job:ps", "/job:worker/task:3"}}),
      absl::OkStatus());
}

// tensorflow_estimator/python/estimator/run_config.py, _get_default_session_config_distributed.
TEST(DeviceFiltersOfEstimatorsTest, AreThoseOfTheJob) {
  EXPECT_THAT(DefaultDeviceFilters({"chief", 0}), ElementsAre("/job:ps", "/job:chief"));
  EXPECT_THAT(DefaultDeviceFilters({"master", 0}), ElementsAre("/job:ps", "/job:master"));
  EXPECT_THAT(DefaultDeviceFilters({"worker", 3}), ElementsAre("/job:ps", "/job:worker/task:3"));
  EXPECT_THAT(DefaultDeviceFilters({"ps", 0}), ElementsAre("/job:ps", "/job:worker", "/job:chief", "/job:master"));
  EXPECT_THAT(DefaultDeviceFilters({"evaluator", 0}), IsEmpty());
}

}  // namespace
}  // namespace muster::session_config_test
