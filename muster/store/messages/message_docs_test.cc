// The tables of methods and of fields in docs/ against what the code declares.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "muster/store/messages/messages.h"

namespace muster::message_docs_test {
namespace {

std::vector<std::string> Pages() {
  const std::filesystem::path docs = SourceFolder() + "/docs";
  std::vector<std::filesystem::path> files = {docs / "queues.md", docs / "work_queue.md"};
  for (const auto& entry : std::filesystem::directory_iterator(docs / "store")) files.push_back(entry.path());
  std::vector<std::string> pages;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path);
    pages.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return pages;
}

// Without what stands in parentheses: "1 kind, 2 limit" of "1 kind (0 none, 1 value), 2 limit".
std::string WithoutRemarks(absl::string_view text) {
  std::string left;
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : 0;
    if (depth == 0) left += c;
    depth -= c == ')' ? 1 : 0;
  }
  std::vector<std::string> words = absl::StrSplit(left, absl::ByAnyChar(" "), absl::SkipEmpty());
  left = absl::StrJoin(words, " ");
  for (size_t at; (at = left.find(" ,")) != std::string::npos;) left.erase(at, 1);
  return left;
}

// The first two cells of each row of each table, by the first: "JoinReply" → "1 client, 2 last_sequence, …".
std::map<std::string, std::set<std::string>> Rows() {
  std::map<std::string, std::set<std::string>> rows;
  for (const std::string& page : Pages()) {
    for (absl::string_view line : absl::StrSplit(page, '\n')) {
      const std::vector<absl::string_view> cells = absl::StrSplit(line, '|');
      if (cells.size() < 3 || !cells[0].empty()) continue;
      const std::string first(absl::StripAsciiWhitespace(cells[1]));
      rows[first].insert(WithoutRemarks(cells[2]));
      // "30 take_work, 31 give_up_work" is a row of two methods.
      for (absl::string_view method : absl::StrSplit(first, ", ")) rows[std::string(method)];
    }
  }
  return rows;
}

template <typename T>
struct ElementOf {
  using Type = T;
};
template <typename T>
struct ElementOf<std::vector<T>> {
  using Type = T;
};

// What each message declares, and each type that stands in one: "1 client, 2 last_sequence, …".
class Declared {
 public:
  template <typename Message>
  void Add() {
    std::vector<std::string> fields;
    kFieldsOf<Message>.ForEach([&](auto field) {
      fields.push_back(absl::StrCat(field.kNumber, " ", field.Name()));
      using Member = typename ElementOf<std::decay_t<decltype(field.In(std::declval<Message&>()))>>::Type;
      if constexpr (std::is_class_v<Member> && !std::is_same_v<Member, std::string>) Add<Member>();
    });
    if (!fields.empty()) messages_[std::string(TypeName<Message>())] = absl::StrJoin(fields, ", ");
  }
  const std::map<std::string, std::string>& messages() const { return messages_; }

 private:
  std::map<std::string, std::string> messages_;
};

TEST(MessageDocsTest, TheFieldsOfEveryMessageAreDocumentedUnderTheirNumbers) {
  Declared declared;
  ForEachStoreMessage([&]<typename Message>() { declared.Add<Message>(); });
  EXPECT_EQ(declared.messages().at("Stamp"), "1 client, 2 incarnation, 3 sequence");
  EXPECT_EQ(declared.messages().at("ClipSpec"), "1 kind, 2 limit");
  const auto rows = Rows();
  for (const auto& [message, fields] : declared.messages()) {
    const auto row = rows.find(message);
    ASSERT_NE(row, rows.end()) << message << " has no row in docs/: | " << message << " | " << fields << " |";
    EXPECT_THAT(row->second, ::testing::ElementsAre(fields)) << message;
  }
}

TEST(MessageDocsTest, EveryMethodIsDocumentedUnderItsNumber) {
  const auto rows = Rows();
  for (uint16_t method = 1; method < kStoreMethods; ++method) {
    const std::string name = StoreMethodName(method);
    if (name == "unknown") continue;
    EXPECT_TRUE(rows.contains(absl::StrCat(method, " ", name))) << "docs/ have no row of " << method << " " << name;
  }
}

}  // namespace
}  // namespace muster::message_docs_test
