#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

extern "C" {
int mkl_serv_intel_cpu_true();
int mkl_serv_intel_cpu();
}

namespace muster::mkl_amd_test {
namespace {

bool IsIntelProcessor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("vendor_id", 0) == 0) return line.find("GenuineIntel") != std::string::npos;
  return false;
}

// MKL's own call, from inside libtorch, goes through the dynamic linker: it must find the program's definition there.
void ExpectDefinedByTheProgram(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  ASSERT_NE(found, nullptr) << name;
  Dl_info where = {};
  ASSERT_NE(dladdr(found, &where), 0);
  EXPECT_EQ(std::string(where.dli_fname).find("libtorch"), std::string::npos) << name << " is in " << where.dli_fname;
}

class MklAmdTest : public testing::Test {
 protected:
  ~MklAmdTest() override { unsetenv("MUSTER_MKL_AMD"); }
};

TEST_F(MklAmdTest, MklSeesTheProgramsDefinitions) {
  ExpectDefinedByTheProgram("mkl_serv_intel_cpu_true");
  ExpectDefinedByTheProgram("mkl_serv_intel_cpu");
}

TEST_F(MklAmdTest, SwitchedOnUnlessTold) {
  unsetenv("MUSTER_MKL_AMD");
  EXPECT_EQ(mkl_serv_intel_cpu_true(), 1);
  EXPECT_EQ(mkl_serv_intel_cpu(), 1);
  setenv("MUSTER_MKL_AMD", "1", 1);
  EXPECT_EQ(mkl_serv_intel_cpu_true(), 1);
}

TEST_F(MklAmdTest, NeverIsNoOnAnyProcessor) {
  setenv("MUSTER_MKL_AMD", "never", 1);
  EXPECT_EQ(mkl_serv_intel_cpu_true(), 0);
  EXPECT_EQ(mkl_serv_intel_cpu(), 0);
}

TEST_F(MklAmdTest, SwitchedOffItTellsTheTruth) {
  setenv("MUSTER_MKL_AMD", "0", 1);
  EXPECT_EQ(mkl_serv_intel_cpu_true(), IsIntelProcessor() ? 1 : 0);
  EXPECT_EQ(mkl_serv_intel_cpu(), IsIntelProcessor() ? 1 : 0);
}

}  // namespace
}  // namespace muster::mkl_amd_test
