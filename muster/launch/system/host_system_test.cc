#include "muster/launch/system/host_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::host_system_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HostSystem, GlibcIsWhatGetconfPrints) {
  EXPECT_EQ(GlibcOfHost("glibc 2.36\n"), (GlibcVersion{2, 36}));
  for (const char* text :
       {"", "undefined\n", "musl 1.2.3", "glibc", "glibc x", "getconf: GNU_LIBC_VERSION: unknown variable"})
    EXPECT_EQ(GlibcOfHost(text), std::nullopt) << text;
}

std::string WhyNotOn(const HostSystem& system) {
  const ElfNeeds muster = {.machine = "x86_64", .libraries = {"libc.so.6"}, .least_glibc = GlibcVersion{2, 34}};
  return std::string(CheckRunsOn("b", system, muster).message());
}

TEST(HostSystem, SaysWhatAHostLacksAndTheWayOut) {
  EXPECT_EQ(WhyNotOn({.machine = "x86_64", .glibc = GlibcVersion{2, 34}}), "");
  EXPECT_EQ(WhyNotOn({.machine = "x86_64", .glibc = GlibcVersion{3, 0}}), "");
  EXPECT_EQ(
      WhyNotOn({.machine = "x86_64", .glibc = GlibcVersion{2, 28}}),
      "host b has glibc 2.28, this muster needs 2.34; build muster on a system as old as b's, or install it there");
  EXPECT_EQ(WhyNotOn({.machine = "aarch64", .glibc = GlibcVersion{2, 36}}),
            "host b is aarch64, this muster is x86_64; build muster on a host of b's kind and install it there");
  EXPECT_THAT(WhyNotOn({.machine = "x86_64", .glibc = {}}), HasSubstr("another C library than glibc (musl"));
  EXPECT_THAT(WhyNotOn({.machine = "a\nb", .glibc = {}}), Not(HasSubstr("\n")));
}

TEST(HostSystem, AMusterWithOtherLibrariesStaysWhereItIs) {
  const ElfNeeds muster = {.machine = "x86_64", .libraries = {"libm.so.6", "ld-linux-x86-64.so.2", "libfmt.so.9"}};
  EXPECT_THAT(CheckRunsOn("b", {.machine = "x86_64", .glibc = GlibcVersion{2, 36}}, muster).message(),
              HasSubstr("more than the C library: libfmt.so.9;"));
}

}  // namespace
}  // namespace muster::host_system_test
