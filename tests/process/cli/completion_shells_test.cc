// The scripts of `muster completion` in their shells: bash, zsh and fish run them and complete commands, flags and ids.
#include <gmock/gmock.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/experiments.h"

namespace muster::completion_shells_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

class CompletionShells : public ExperimentsTest {
 protected:
  // Runs a script in a shell that finds `muster` on PATH. Returns its output's lines.
  std::vector<std::string> Run(const std::vector<std::string>& shell, const std::string& script) {
    ProcessOptions options;
    options.directory = project();
    options.environment = {{"MUSTER_HOME", home()},
                           {"PATH", absl::StrCat(BinFolder(), ":", getenv("PATH"))},
                           {"HOME", Aside("nobody")},
                           {"TERM", "dumb"}};
    std::vector<std::string> words = shell;
    words.push_back(script);
    Process process(words, options);
    EXPECT_EQ(process.Wait(), 0) << process.err << process.out;
    return absl::StrSplit(process.out, '\n', absl::SkipEmpty());
  }
  void MakeAnExperiment() {
    WriteExperiment("run: echo hello");
    Out({"train"});
  }
};

TEST_F(CompletionShells, Bash) {
  MakeAnExperiment();
  const auto completed = [this](const std::string& words, int at) {
    return Run(
        {"/bin/bash", "--norc", "-c"},
        absl::StrCat("source <(muster completion bash); complete -p muster > /dev/null || exit 1\n", "COMP_WORDS=(",
                     words, "); COMP_CWORD=", at, "; _muster muster; printf '%s\\n' \"${COMPREPLY[@]}\""));
  };
  EXPECT_THAT(completed("muster tra", 1), ElementsAre("train", "trace"));
  EXPECT_THAT(completed("muster train --no-g", 2), ElementsAre("--no-gpus"));
  EXPECT_THAT(completed("muster completion ''", 2), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(completed("muster status ''", 2), ElementsAre("1"));
}

TEST_F(CompletionShells, Fish) {
  if (access("/usr/bin/fish", X_OK) != 0) GTEST_SKIP() << "fish isn't installed (apt install fish)";
  MakeAnExperiment();
  const auto completed = [this](const std::string& line) {
    return Run({"/usr/bin/fish", "--no-config", "-c"},
               absl::StrCat("muster completion fish | source; complete -C '", line, "'"));
  };
  EXPECT_THAT(completed("muster tra"),
              AllOf(Contains(HasSubstr("train\t")), Contains(HasSubstr("trace\t")), Not(Contains(HasSubstr("kill")))));
  EXPECT_THAT(completed("muster train --no-g"), ElementsAre(HasSubstr("--no-gpus\t")));
  EXPECT_THAT(completed("muster completion "), AllOf(Contains("bash"), Contains("zsh"), Contains("fish")));
  EXPECT_THAT(completed("muster status "), Contains("1"));
}

// A zsh on a terminal of its own, in which the tab key is pressed. It hands its line back through a FIFO.
constexpr char kZshOnATerminal[] = R"(
zmodload zsh/zpty
mkfifo $PWD/line || exit 1
zpty inner zsh -f -i
zpty -w inner "PROMPT= ; autoload -Uz compinit; compinit -u -D; source <(muster completion zsh); bindkey '^I' complete-word"
zpty -w inner "tell() { print -r -- \$BUFFER > $PWD/line; BUFFER= }; zle -N tell; bindkey '^G' tell; print ready > $PWD/line"
read -r ready < $PWD/line
for typed in "$@"; do
  zpty -w -n inner "$typed"$'\t\x07'
  line=
  while [[ -z $line ]]; do read -r line < $PWD/line; done  # empty if the last writer is still there
  print -r -- "$line"
done
zpty -d inner
)";

TEST_F(CompletionShells, Zsh) {
  if (access("/usr/bin/zsh", X_OK) != 0) GTEST_SKIP() << "zsh isn't installed (apt install zsh)";
  MakeAnExperiment();
  EXPECT_THAT(Run({"/usr/bin/zsh", "-f", "-c"},
                  absl::StrCat("set -- 'muster trai' 'muster train --no-g' 'muster completion fi' 'muster status '\n",
                               kZshOnATerminal)),
              ElementsAre("muster train", "muster train --no-gpus", "muster completion fish", "muster status 1"));
}

}  // namespace
}  // namespace muster::completion_shells_test
