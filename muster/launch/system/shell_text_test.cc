#include "muster/launch/system/shell_text.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/shell_word.h"

namespace muster::shell_text_test {
namespace {

using ::testing::HasSubstr;

constexpr char kVariable[] = "MUSTER_VALUE_X";

// Returns `text` with `value` in place of each @.
absl::StatusOr<std::string> Filled(std::string_view text, std::string_view value) {
  ShellText filled;
  for (size_t begin = 0;;) {
    const size_t at = text.find('@', begin);
    filled.Append(text.substr(begin, at == std::string_view::npos ? at : at - begin));
    if (at == std::string_view::npos) return filled.text();
    if (const absl::Status placed = filled.AppendValue(value, kVariable); !placed.ok()) return placed;
    begin = at + 1;
  }
}

TEST(ShellText, AHarmlessValueStandsInTheCommandItself) {
  EXPECT_EQ(Filled("train --rate @", "0.1").value(), "train --rate 0.1");
  EXPECT_EQ(Filled("train '@' \"@\" $((@ + 1)) `echo @` ${Y:-@}", "4").value(),
            "train '4' \"4\" $((4 + 1)) `echo 4` ${Y:-4}");
}

TEST(ShellText, AnotherIsReferredTo) {
  constexpr char kValue[] = "it's $(x)";
  EXPECT_EQ(Filled("a @ b", kValue).value(), "a \"${MUSTER_VALUE_X}\" b");
  EXPECT_EQ(Filled("a \"b @\"", kValue).value(), "a \"b ${MUSTER_VALUE_X}\"");
  EXPECT_EQ(Filled("a 'b @'", kValue).value(), "a 'b '\"${MUSTER_VALUE_X}\"''");
  EXPECT_EQ(Filled("cat <<E\n@\nE\n", kValue).value(), "cat <<E\n${MUSTER_VALUE_X}\nE\n");
  EXPECT_EQ(Filled("cat <<E\n@\nE\n", "E").value(), "cat <<E\n${MUSTER_VALUE_X}\nE\n") << "it would end the document";
  EXPECT_EQ(Filled("@ x", "if").value(), "\"${MUSTER_VALUE_X}\" x");
  EXPECT_EQ(Filled("@ x", "A=b").value(), "\"${MUSTER_VALUE_X}\" x");
}

TEST(ShellText, WhereItWouldNotArriveItIsRefusedWithTheWayOut) {
  const auto why = [](std::string_view text, std::string_view value) {
    return std::string(Filled(text, value).status().message());
  };
  EXPECT_THAT(why("a \\@", "1"), HasSubstr("directly after a backslash; accepted: without the backslash"));
  EXPECT_THAT(why("a $@", "HOME"), HasSubstr("directly after a $"));
  EXPECT_THAT(why("cat <<'E'\n@\nE\n", "a b"), HasSubstr("accepted: <<E without quotes"));
  EXPECT_THAT(why("cat <<'E'\n@\nE\n", "E"), HasSubstr("in quotes"));
  EXPECT_THAT(why("cat <<@\n", "E"), HasSubstr("delimiter"));
  EXPECT_THAT(why("a `b @`", "a b"), HasSubstr("accepted: $( ) instead"));
  EXPECT_THAT(why("a $((@))", "x[$(y)]"), HasSubstr("arithmetic"));
  EXPECT_THAT(why("a ${B:-@}", "a b"), HasSubstr("in ${ }"));
  EXPECT_THAT(why("a \"$(case a in a) echo @;; esac)\"", "a b"), HasSubstr("after case within ( )"));
  EXPECT_THAT(why("a $'b\\'' @", "a b"), HasSubstr("after $'"));
  EXPECT_THAT(why("[[ @ -eq 1 ]]", "a[$(y)]"), HasSubstr("after [["));
}

// Runs `text` in a shell with the value in the variable, and returns what it prints.
std::string OutputOf(const std::string& shell, const std::string& text, const std::string& value,
                     const std::string& folder) {
  setenv(kVariable, value.c_str(), 1);
  const std::string command = absl::StrCat("cd ", QuotedWord(folder), " && exec ", shell, " -c ",
                                           QuotedWord("eval " + QuotedWord(text)), " 2>/dev/null");
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) out += static_cast<char>(c);
  pclose(pipe);
  unsetenv(kVariable);
  return out;
}

// Each prints <VALUE>, VALUE being in the place of @.
constexpr const char* kPlaces[] = {
    "printf '<%s>' @",
    "printf '<%s>' '@'",
    "printf '<%s>' \"@\"",
    "printf '<%s>' ''@''",
    "printf '<%s>' \"\"@\"\"",
    "printf '<%s>' \\@",
    "printf '<%s>' \"\\@\"",
    "printf '<%s>' $@",
    "printf '<%s>' \"$@\"",
    "printf '<%s>' $(printf %s @)",
    "printf '<%s>' \"$(printf %s @)\"",
    "printf '<%s>' \"$(printf %s \"@\")\"",
    "printf '<%s>' \"$(printf %s '@')\"",
    "printf '<%s>' \"$(printf %s \"$(printf %s @)\")\"",
    "printf '<%s>' `printf %s @`",
    "printf '<%s>' \"`printf %s @`\"",
    "printf '<%s>' \"`printf %s '@'`\"",
    "printf '<%s>' \"$(case a in a) printf %s @;; esac)\"",
    "printf '<%s>' \"$(case a in (a) printf %s @;; esac)\"",
    "printf '<%s>' \"$(case a in a) printf %s '@';; esac)\"",
    "printf '<%s>' $(case a in a) printf %s \"@\";; esac)",
    "case a in a) printf '<%s>' @;; esac",
    "printf '<%s>' ${nothing:-@}",
    "printf '<%s>' \"${nothing:-@}\"",
    "printf '<%s>' $((@))",
    "printf '<%s>' \"$((0+@))\"",
    "true # @\nprintf '<%s>' @",
    "printf '<%s>' a#b @ >/dev/null; printf '<%s>' @",
    "printf '<'; printf '%s>' @",
    "if true; then printf '<%s>' @; fi",
    "for i in @; do printf '<%s>' \"$i\"; done",
    "V=@; printf '<%s>' \"$V\"",
    "V=@ sh -c 'printf \"<%s>\" \"$V\"'",
    "printf '<'; cat <<E | tr -d '\\n'\n@\nE\nprintf '>'",
    "printf '<'; cat <<E | tr -d '\\n'\n\"@\nE\nprintf '>'",
    "printf '<'; cat <<'E' | tr -d '\\n'\n@\nE\nprintf '>'",
    "printf '<'; cat <<\\E | tr -d '\\n'\n@\nE\nprintf '>'",
    "printf '<'; cat <<-E | tr -d '\\n'\n\t@\n\tE\nprintf '>'",
    "printf '<'; cat <<@ | tr -d '\\n'\na\n@\nprintf '>'",
    "printf '<%s>' \"$(cat <<E\n@\nE\n)\"",
    "printf '<%s>' \"$(cat <<E\n$(printf %s @)\nE\n)\"",
    "cat <<A >/dev/null; printf '<%s>' @\nit's \"\nA\n",
    "cat <<A - <<B >/dev/null\nit's\nA\n\"\nB\nprintf '<%s>' @",
    "cat <<A >/dev/null\nit's\\\nA\nA\nprintf '<%s>' @",
    "printf '<%s>' \"it's\"@ >/dev/null; printf '<%s>' @",
    "printf '<%s>' \\\"@ | tr -d '\"'",
    "(printf '<%s>' @)",
    "( (printf '<%s>' @) )",
    "((printf '<%s>' @))",
    "f() { printf '<%s>' @; }; f",
    "{ printf '<%s>' @; }",
    "printf '<%s>' $(( 1 << 2 )) >/dev/null; printf '<%s>' @",
    "printf '<%s>' \\\\@ | sed 's/^<./</'",
    "eval 'printf \"<%s>\" \"$V\"' >/dev/null; printf '<%s>' @",
};

constexpr const char* kValues[] = {
    "4",
    "a b  c",
    "",
    "'",
    "\"",
    "it's",
    "$(touch HURT)",
    "`touch HURT`",
    "; touch HURT; #",
    ";touch HURT\n#",
    "\ntouch HURT\n",
    "'; touch HURT; '",
    "\"; touch HURT; \"",
    "'\"; touch HURT; \"'",
    "x; touch HURT",
    "x;; esac; touch HURT",
    "x;; esac); touch HURT; (",
    ") ; touch HURT; (",
    "}; touch HURT; {",
    "E\ntouch HURT\ncat <<E",
    "E",
    "A",
    "a[$(touch HURT)]",
    "$HOME",
    "${HOME}",
    "$((1+1))",
    "\\",
    "\\$(touch HURT)",
    "a\\",
    "*",
    "?[a-z]",
    "~",
    "!!",
    "# x",
    "&touch HURT&",
    "|touch HURT",
    ">HURT",
    "<x",
    "if",
    "done",
    "A=b",
    "-n",
    "%s",
    "größe",
    "a\tb",
};

// Returns whether `place` has printed the value as its last word.
bool Arrived(const std::string& place, const std::string& value, const std::string& out) {
  const bool splits = place.find("%s>' $(") != std::string::npos;  // by its author's will
  std::string printed = value;
  if (place.find("tr -d '\\n'") != std::string::npos) printed = absl::StrReplaceAll(printed, {{"\n", ""}});
  if (place.find("tr -d '\"'") != std::string::npos) printed = absl::StrReplaceAll(printed, {{"\"", ""}});
  if (place.find("\"@\nE") != std::string::npos) printed.insert(0, "\"");
  std::string without_ends = printed;  // as $( ) leaves it
  while (without_ends.ends_with('\n')) without_ends.pop_back();
  const bool arithmetic = place.starts_with("((");  // in bash, where it is no command that prints
  return splits || arithmetic || out.ends_with("<" + printed + ">") || out.ends_with("<" + without_ends + ">");
}

class ShellTextIn : public ::testing::TestWithParam<const char*> {};

// Whatever the place and the value: the value comes out as it is, or the command is refused.
TEST_P(ShellTextIn, NoValueIsEverCode) {
  const ScratchFolder scratch;
  int run = 0, refused = 0;
  for (const std::string place : kPlaces) {
    for (const std::string value : kValues) {
      const auto text = Filled(place, value);
      ++(text.ok() ? run : refused);
      if (!text.ok()) continue;
      const std::string out = OutputOf(GetParam(), *text, value, scratch.path());
      EXPECT_TRUE(Arrived(place, value, out))
          << place << "\nvalue: " << value << "\nbecame: " << *text << "\nprinted: " << out;
      ASSERT_FALSE(std::filesystem::exists(scratch / "HURT")) << place << "\nvalue: " << value << "\nbecame: " << *text;
    }
  }
  EXPECT_GT(run, 1000);
  EXPECT_GT(refused, 300);
}

INSTANTIATE_TEST_SUITE_P(Shells, ShellTextIn, ::testing::Values("/bin/sh", "/bin/bash"),
                         [](const auto& shell) { return std::string(shell.param).substr(5); });

}  // namespace
}  // namespace muster::shell_text_test
