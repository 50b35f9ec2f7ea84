#include "muster/launch/system/elf_needs.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster::elf_needs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string OwnFile() {
  const std::string path = "/proc/self/exe";
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

template <typename T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A file with as little as the parser reads: libc.so.6 in the versions GLIBC_2.4 and GLIBC_2.34, and liba.so in A_9.9.
struct SmallElf {
  Elf64_Ehdr header = {};
  Elf64_Phdr load = {}, dynamic = {};
  Elf64_Dyn entries[6] = {};
  Elf64_Verneed libc = {}, liba = {};
  Elf64_Vernaux old_version = {}, new_version = {}, version_of_a = {};
  char strings[64] = "\0libc.so.6\0liba.so\0GLIBC_2.4\0GLIBC_2.34\0A_9.9";  // at 0, 1, 11, 19, 29, 40
};

// Addresses in memory are those in the file and this much more.
constexpr uint64_t kLoadedAt = 0x400000;

SmallElf Small() {
  SmallElf elf;
  memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
  elf.header.e_ident[EI_CLASS] = ELFCLASS64;
  elf.header.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.header.e_machine = EM_AARCH64;
  elf.header.e_phoff = offsetof(SmallElf, load);
  elf.header.e_phentsize = sizeof(Elf64_Phdr);
  elf.header.e_phnum = 2;
  elf.load = {.p_type = PT_LOAD, .p_vaddr = kLoadedAt, .p_filesz = sizeof(SmallElf)};
  elf.dynamic = {.p_type = PT_DYNAMIC, .p_offset = offsetof(SmallElf, entries), .p_filesz = sizeof elf.entries};
  elf.entries[0] = {.d_tag = DT_NEEDED, .d_un = {.d_val = 1}};
  elf.entries[1] = {.d_tag = DT_NEEDED, .d_un = {.d_val = 11}};
  elf.entries[2] = {.d_tag = DT_STRTAB, .d_un = {.d_val = kLoadedAt + offsetof(SmallElf, strings)}};
  elf.entries[3] = {.d_tag = DT_STRSZ, .d_un = {.d_val = sizeof elf.strings}};
  elf.entries[4] = {.d_tag = DT_VERNEED, .d_un = {.d_val = kLoadedAt + offsetof(SmallElf, libc)}};
  elf.entries[5] = {.d_tag = DT_VERNEEDNUM, .d_un = {.d_val = 2}};
  constexpr uint32_t kBehind = sizeof(Elf64_Verneed), kNext = sizeof(Elf64_Vernaux);
  elf.libc = {.vn_version = 1, .vn_cnt = 2, .vn_file = 1, .vn_aux = 2 * kBehind, .vn_next = kBehind};
  elf.liba = {.vn_version = 1, .vn_cnt = 1, .vn_file = 11, .vn_aux = kBehind + 2 * kNext};
  elf.new_version = {.vna_name = 29};
  elf.old_version = {.vna_name = 19, .vna_next = kNext};
  elf.version_of_a = {.vna_name = 40};
  return elf;
}

TEST(ElfNeeds, OfThisProgram) {
  const auto needs = NeedsOfElf(OwnFile());
  ASSERT_TRUE(needs.ok()) << needs.status();
  utsname system = {};
  ASSERT_EQ(uname(&system), 0);
  EXPECT_EQ(needs->machine, system.machine);
  EXPECT_THAT(needs->libraries, ::testing::Contains("libc.so.6"));
  ASSERT_TRUE(needs->least_glibc.has_value());
  EXPECT_GT(*needs->least_glibc, (GlibcVersion{2, 2}));
  EXPECT_LE(needs->least_glibc, ParseGlibcVersion(gnu_get_libc_version()));
}

TEST(ElfNeeds, OfASmallFile) {
  const auto needs = NeedsOfElf(BytesOf(Small()));
  ASSERT_TRUE(needs.ok()) << needs.status();
  EXPECT_EQ(needs->machine, "aarch64");
  EXPECT_THAT(needs->libraries, ElementsAre("libc.so.6", "liba.so"));
  EXPECT_EQ(needs->least_glibc, (GlibcVersion{2, 34}));
  EXPECT_THAT(LibrariesBeyondGlibc(*needs), ElementsAre("liba.so"));
}

TEST(ElfNeeds, NoneOfAStaticProgram) {
  SmallElf elf = Small();
  elf.header.e_phnum = 1;
  const auto needs = NeedsOfElf(BytesOf(elf));
  ASSERT_TRUE(needs.ok()) << needs.status();
  EXPECT_THAT(needs->libraries, IsEmpty());
  EXPECT_EQ(needs->least_glibc, std::nullopt);
}

TEST(ElfNeeds, ACutFileIsAnError) {
  const std::string whole = BytesOf(Small());
  const size_t last_read = offsetof(SmallElf, strings) + sizeof(SmallElf::strings);
  for (size_t size = 0; size < last_read; ++size)
    EXPECT_TRUE(absl::IsInvalidArgument(NeedsOfElf(std::string(whole, 0, size)).status())) << size;
  EXPECT_FALSE(NeedsOfElf("#!/bin/sh\n").ok());
}

// The sanitizers look where it reads.
TEST(ElfNeeds, ReadsNothingOutsideWhateverAByteIs) {
  const std::string whole = BytesOf(Small());
  for (size_t i = 0; i < whole.size(); ++i)
    for (const char value : {'\0', '\1', '\x7f', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[i] = value;
      const auto needs = NeedsOfElf(changed);
      if (!needs.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(needs.status())) << i;
      }
    }
}

TEST(ElfNeeds, BrokenTablesAreErrors) {
  const auto broken = [](auto change) {
    SmallElf elf = Small();
    change(elf);
    return !NeedsOfElf(BytesOf(elf)).ok();
  };
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.header.e_ident[EI_CLASS] = ELFCLASS32; }));
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.header.e_phoff = ~uint64_t{0} - 8; }));
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.header.e_phentsize = 1; }));
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.dynamic.p_offset = ~uint64_t{0} - 8; }));
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.load.p_offset = ~uint64_t{0} - 8; }));
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.entries[0].d_un.d_val = sizeof elf.strings; })) << "no such name";
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.entries[2].d_un.d_val = 1; })) << "strings that aren't loaded";
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.entries[3].d_un.d_val = ~uint64_t{0}; })) << "too many strings";
  EXPECT_TRUE(broken([](SmallElf& elf) { memset(elf.strings, 'a', sizeof elf.strings); })) << "a name without an end";
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.libc.vn_next = ~uint32_t{0}; }));
  EXPECT_TRUE(broken([](SmallElf& elf) { elf.libc.vn_aux = ~uint32_t{0}; }));
}

// 700 libraries that share one list of 100 versions: few bytes, much to read.
TEST(ElfNeeds, TablesThatNameTheSameAgainAndAgainEnd) {
  SmallElf elf = Small();
  elf.entries[5].d_un.d_val = 700;
  elf.load.p_filesz = 1 << 20;
  elf.entries[4].d_un.d_val = kLoadedAt + sizeof elf;
  std::string file = BytesOf(elf);
  constexpr uint32_t kBehind = sizeof(Elf64_Verneed);
  for (uint32_t i = 0; i < 700; ++i)
    file += BytesOf(Elf64_Verneed{.vn_cnt = 100, .vn_aux = (700 - i) * kBehind, .vn_next = kBehind});
  for (int i = 0; i < 100; ++i) file += BytesOf(Elf64_Vernaux{.vna_name = 19, .vna_next = sizeof(Elf64_Vernaux)});
  const auto needs = NeedsOfElf(file);
  ASSERT_FALSE(needs.ok());
  EXPECT_THAT(needs.status().ToString(), HasSubstr("no end"));
}

TEST(GlibcVersionText, IsTwoNumbers) {
  EXPECT_EQ(ParseGlibcVersion("2.34"), (GlibcVersion{2, 34}));
  EXPECT_EQ(ParseGlibcVersion("2.2.5"), (GlibcVersion{2, 2}));
  EXPECT_LT((GlibcVersion{2, 4}), (GlibcVersion{2, 34}));
  for (const char* text : {"", "2", "2.", ".3", "2.x", "-2.3", "2.99999", "PRIVATE", "2 .3", "2.+3"})
    EXPECT_EQ(ParseGlibcVersion(text), std::nullopt) << text;
}

}  // namespace
}  // namespace muster::elf_needs_test
