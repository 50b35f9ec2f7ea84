#include "muster/launch/spec/key_table.h"

#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"

namespace muster::key_table_test {
namespace {

using ::testing::ElementsAreArray;

// Returns all forms, also those nested in others.
std::vector<KeyForm> AllForms(const std::vector<KeyForm>& forms) {
  std::vector<KeyForm> all;
  for (const KeyForm& form : forms) {
    all.push_back(form);
    const std::vector<KeyForm> within = AllForms(form.of);
    all.insert(all.end(), within.begin(), within.end());
  }
  return all;
}

// Returns the lines of a section as in the page.
std::vector<std::string> PageLines(const KeySection& section) {
  std::vector<std::string> lines = {absl::StrCat("### ", section.where), "", "| key | accepted | default | meaning |",
                                    "|---|---|---|---|"};
  for (const KeyRow& row : section.keys)
    lines.push_back(
        absl::StrCat("| `", row.name, "` | ", row.Accepted(), " | ", row.standard, " | ", row.meaning, " |"));
  return lines;
}

TEST(ExperimentKeys, ThePageListsThemAll) {
  const auto page = PosixFileSystem().ReadFile(SourceFolder() + "/docs/experiment_file.md").value();
  std::vector<std::string> wanted;
  for (const KeySection& section : ExperimentKeys()) {
    const std::vector<std::string> lines = PageLines(section);
    wanted.insert(wanted.end(), lines.begin(), lines.end());
    wanted.push_back("");
  }
  wanted.pop_back();
  std::vector<std::string> written;
  const absl::string_view last_chapter = absl::string_view(page).substr(page.rfind("\n## Keys\n"));
  for (const absl::string_view line : absl::StrSplit(last_chapter, '\n'))
    if (absl::StartsWith(line, "### ") || !written.empty()) written.emplace_back(line);
  while (!written.empty() && written.back().empty()) written.pop_back();
  EXPECT_THAT(written, ElementsAreArray(wanted)) << "the last chapter of the page, \"Keys\", is the table";
}

TEST(ExperimentKeys, AreSaidWhole) {
  std::set<std::string> sections;
  for (const KeySection& section : ExperimentKeys()) {
    EXPECT_TRUE(sections.insert(section.name).second) << section.name;
    std::set<std::string> names;
    for (const KeyRow& row : section.keys) {
      const std::string key = absl::StrCat(section.name, ".", row.name);
      EXPECT_TRUE(names.insert(row.name).second) << key;
      EXPECT_FALSE(row.meaning.empty()) << key;
      EXPECT_FALSE(row.forms.empty()) << key;
      for (const KeyForm& form : AllForms(row.forms)) {
        EXPECT_FALSE(form.text.empty()) << key;
        EXPECT_EQ(form.text.find('|'), std::string::npos) << key;
        EXPECT_EQ(form.kind == FormKind::kWord, !form.words.empty()) << key;
        EXPECT_EQ(form.kind == FormKind::kSection, !form.section.empty()) << key;
        EXPECT_EQ(form.kind == FormKind::kList || form.kind == FormKind::kNames, !form.of.empty()) << key;
        EXPECT_LE(form.least, form.most) << key;
        EXPECT_NO_THROW(std::regex{form.pattern}) << key;
      }
    }
  }
}

TEST(ExperimentKeys, SectionsAreThereAndAllUsed) {
  std::set<std::string> used = {kFileSection};
  for (const KeySection& section : ExperimentKeys())
    for (const KeyRow& row : section.keys)
      for (const KeyForm& form : AllForms(row.forms))
        if (form.kind == FormKind::kSection) used.insert(ExperimentKeySection(form.section).name);
  EXPECT_EQ(used.size(), ExperimentKeys().size());
}

TEST(AcceptedText, ReadsAsASentence) {
  EXPECT_EQ(AcceptedText({{.text = "a"}}), "a");
  EXPECT_EQ(AcceptedText({{.text = "a"}, {.text = "b"}}), "a, or b");
  EXPECT_EQ(AcceptedText({{.text = "a"}, {.text = "b"}, {.text = "c"}}), "a, b, or c");
}

}  // namespace
}  // namespace muster::key_table_test
