#include "muster/launch/system/elf_needs.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Far more than any program has. The tables of a file can name the same entries again and again, so the file's size
// bounds neither time nor memory.
constexpr size_t kMostEntries = 65536;

absl::Status BrokenElf(std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a whole ELF file: ", AbslView(why)));
}

std::string NameOfMachine(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64le";
    case EM_RISCV:
      return "riscv64";
    default:
      return absl::StrCat("ELF machine ", machine);
  }
}

std::optional<GlibcVersion> GlibcOfSymbolVersion(std::string_view name) {
  // Stands for a kind of relocations that this version has begun to understand.
  if (name == "GLIBC_ABI_DT_RELR") return GlibcVersion{2, 36};
  constexpr std::string_view kPrefix = "GLIBC_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return ParseGlibcVersion(name.substr(kPrefix.size()));
}

// What the entries of the dynamic section say. Addresses are those in memory.
struct DynamicSection {
  std::vector<uint64_t> libraries;  // names, as offsets in the strings
  uint64_t strings = 0, strings_size = 0;
  uint64_t versions = 0, versions_count = 0;  // the table of needed versions
};

class ElfReader {
 public:
  explicit ElfReader(std::string_view file) : file_(file) {}

  absl::StatusOr<ElfNeeds> Read() {
    ASSIGN_OR_RETURN(const auto header, At<Elf64_Ehdr>(0));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return BrokenElf("it doesn't begin like one");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      return absl::InvalidArgumentError("an ELF file for another kind of machine; accepted: 64-bit little-endian ones");
    ElfNeeds needs = {.machine = NameOfMachine(header.e_machine), .libraries = {}, .least_glibc = {}};
    ASSIGN_OR_RETURN(const auto dynamic_at, ReadSegments(header));
    if (!dynamic_at.has_value()) return needs;  // linked statically
    ASSIGN_OR_RETURN(const DynamicSection dynamic, ReadDynamic(*dynamic_at));
    RETURN_IF_ERROR(FindStrings(dynamic));
    for (const uint64_t name : dynamic.libraries) {
      ASSIGN_OR_RETURN(const std::string_view library, StringAt(name));
      needs.libraries.emplace_back(library);
    }
    if (dynamic.versions != 0) {
      ASSIGN_OR_RETURN(needs.least_glibc, LeastGlibc(dynamic));
    }
    return needs;
  }

 private:
  // Copies the structure at `offset`: it may lie at any address.
  template <typename T>
  absl::StatusOr<T> At(uint64_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) return BrokenElf("it ends too early");
    T read;
    memcpy(&read, file_.data() + offset, sizeof read);
    return read;
  }

  // Remembers what is loaded to where. Returns the dynamic section's place, if there is one.
  absl::StatusOr<std::optional<Elf64_Phdr>> ReadSegments(const Elf64_Ehdr& header) {
    std::optional<Elf64_Phdr> dynamic;
    if (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return BrokenElf("segments of another size");
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      if (header.e_phoff > file_.size()) return BrokenElf("segments behind its end");
      ASSIGN_OR_RETURN(const auto segment, At<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr)));
      if (segment.p_type == PT_LOAD) loaded_.push_back(segment);
      if (segment.p_type == PT_DYNAMIC) dynamic = segment;
    }
    return dynamic;
  }

  // Returns where in the file the byte is that gets `address` in memory.
  absl::StatusOr<uint64_t> OffsetOf(uint64_t address) const {
    for (const Elf64_Phdr& segment : loaded_) {
      if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
      const uint64_t within = address - segment.p_vaddr;
      if (segment.p_offset > file_.size() || within >= file_.size() - segment.p_offset) break;
      return segment.p_offset + within;
    }
    return BrokenElf("an address that isn't in it");
  }

  absl::StatusOr<DynamicSection> ReadDynamic(const Elf64_Phdr& place) const {
    DynamicSection dynamic;
    for (uint64_t i = 0; i < place.p_filesz / sizeof(Elf64_Dyn); ++i) {
      if (place.p_offset > file_.size() || i > kMostEntries) return BrokenElf("its dynamic section has no end");
      ASSIGN_OR_RETURN(const auto entry, At<Elf64_Dyn>(place.p_offset + i * sizeof(Elf64_Dyn)));
      const uint64_t value = entry.d_un.d_val;
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) dynamic.libraries.push_back(value);
      if (entry.d_tag == DT_STRTAB) dynamic.strings = value;
      if (entry.d_tag == DT_STRSZ) dynamic.strings_size = value;
      if (entry.d_tag == DT_VERNEED) dynamic.versions = value;
      if (entry.d_tag == DT_VERNEEDNUM) dynamic.versions_count = value;
    }
    return dynamic;
  }

  absl::Status FindStrings(const DynamicSection& dynamic) {
    if (dynamic.strings_size == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const uint64_t offset, OffsetOf(dynamic.strings));
    if (dynamic.strings_size > file_.size() - offset) return BrokenElf("strings behind its end");
    strings_ = file_.substr(offset, dynamic.strings_size);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string_view> StringAt(uint64_t offset) const {
    constexpr size_t kLongestName = 4096;
    if (offset >= strings_.size()) return BrokenElf("a name that isn't among its strings");
    const std::string_view text = strings_.substr(offset, kLongestName);
    const size_t end = text.find('\0');
    if (end == std::string_view::npos) return BrokenElf("a name without an end");
    return text.substr(0, end);
  }

  // The table has an entry for each library, behind which a list of versions hangs.
  absl::StatusOr<std::optional<GlibcVersion>> LeastGlibc(const DynamicSection& dynamic) const {
    std::optional<GlibcVersion> least;
    ASSIGN_OR_RETURN(uint64_t offset, OffsetOf(dynamic.versions));
    size_t seen = 0;
    for (uint64_t i = 0; i < dynamic.versions_count; ++i) {
      ASSIGN_OR_RETURN(const auto library, At<Elf64_Verneed>(offset));
      uint64_t version_at = offset + library.vn_aux;
      for (uint64_t j = 0; j < library.vn_cnt; ++j) {
        if (++seen > kMostEntries) return BrokenElf("its needed versions have no end");
        ASSIGN_OR_RETURN(const auto version, At<Elf64_Vernaux>(version_at));
        ASSIGN_OR_RETURN(const std::string_view name, StringAt(version.vna_name));
        // An empty one is less than any.
        least = std::max(least, GlibcOfSymbolVersion(name));
        if (version.vna_next == 0) break;
        version_at += version.vna_next;
      }
      if (library.vn_next == 0) break;
      if (++seen > kMostEntries) return BrokenElf("its needed versions have no end");
      offset += library.vn_next;
    }
    return least;
  }

  const std::string_view file_;
  std::vector<Elf64_Phdr> loaded_;
  std::string_view strings_;
};

}  // namespace

std::optional<GlibcVersion> ParseGlibcVersion(std::string_view text) {
  const std::vector<std::string> numbers = absl::StrSplit(AbslView(text), '.');
  if (numbers.size() < 2) return std::nullopt;
  GlibcVersion version;
  for (const auto& [number, part] : {std::pair(&numbers[0], &version.major), std::pair(&numbers[1], &version.minor)}) {
    const bool digits = number->find_first_not_of("0123456789") == std::string::npos;
    if (!digits || number->size() > 4 || !absl::SimpleAtoi(*number, part)) return std::nullopt;
  }
  return version;
}

absl::StatusOr<ElfNeeds> NeedsOfElf(std::string_view file) { return ElfReader(file).Read(); }

std::vector<std::string> LibrariesBeyondGlibc(const ElfNeeds& needs) {
  // Since glibc 2.34 the others are empty and stay for older programs.
  constexpr std::array<const char*, 7> kGlibc = {"libc.so.",  "libm.so.",       "ld-linux", "ld64.so.",
                                                 "libdl.so.", "libpthread.so.", "librt.so."};
  std::vector<std::string> beyond;
  for (const std::string& library : needs.libraries)
    if (std::none_of(kGlibc.begin(), kGlibc.end(), [&](const char* own) { return absl::StartsWith(library, own); }))
      beyond.push_back(library);
  return beyond;
}

}  // namespace muster
