// `muster manifest`: what it prints, and what it refuses. The files themselves are of manifest_test.cc in
// muster/launch.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/muster_command.h"

namespace muster::manifest_command_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not, ::testing::StartsWith;

constexpr char kDigits[] =
    "project: digits\ntrain:\n  framework: muster\n  image: me/digits:1\n  muster: {distributed: {ps: 1, worker: 2}}\n"
    "  parameters: {rate: [0.1, 0.2]}\n  run: digits --rate {{ rate }}\n";

class ManifestCommandTest : public ::testing::Test {
 protected:
  ManifestCommandTest() { folder_.Write("muster.yml", kDigits); }

  std::string Out(std::vector<std::string> words) const {
    words.insert(words.begin(), "manifest");
    return MusterOut(words, {.directory = folder_.path()});
  }
  std::string Mistake(std::vector<std::string> words) const {
    words.insert(words.begin(), "manifest");
    return MusterMistake(words, {.directory = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(ManifestCommandTest, PrintsOneRunOfTheFile) {
  const std::string text = Out({"--param", "rate=0.2", "--claim", "results:/results"});
  EXPECT_THAT(text, AllOf(StartsWith("# Needs Kubernetes "), HasSubstr("kind: JobSet\n"), HasSubstr("--rate 0.2\n"),
                          HasSubstr("image: me/digits:1\n"), HasSubstr("kind: Secret\n")));
  EXPECT_NE(text, Out({"--param", "rate=0.2", "--claim", "results:/results"})) << "each has a token of its own";
  const std::vector<std::string> named = {"--param", "rate=0.2", "--claim", "results:/results",
                                          "--token_secret=mine:a"};
  EXPECT_THAT(Out(named), AllOf(Not(HasSubstr("kind: Secret\n")), HasSubstr("name: mine\n")));
  EXPECT_EQ(Out(named), Out(named));
}

TEST_F(ManifestCommandTest, SaysOnStderrWhatIsLost) {
  const Said said = RunMuster({"manifest", "--param", "rate=1"}, {.directory = folder_.path()});
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_THAT(said.out, StartsWith("# Needs Kubernetes "));
  EXPECT_THAT(said.err, StartsWith("muster manifest: OUTPUT_DIR is /tmp/output in each container"));
}

TEST_F(ManifestCommandTest, AParameterThatNothingMentionsIsSaid) {
  const Said said = RunMuster({"manifest", "--param", "rate=1", "--param", "rat=2"}, {.directory = folder_.path()});
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_THAT(said.err, HasSubstr("muster manifest: parameter 'rat' is neither in muster.yml nor in its commands "
                                  "(nearest: rate): tasks only get it as an environment variable\n"));
}

TEST_F(ManifestCommandTest, PrintsTheClusterOfAProgram) {
  const std::string text =
      Out({"--form=job", "--image=i", "--ps=1", "--workers=2", "--muster-ps", "--resources=cpus=2,mem=4GB", "--env=A=b",
           "--", "/opt/My_train", "--name", "$(x)", "[a,b]"});
  EXPECT_THAT(text, AllOf(HasSubstr("name: my-train-worker\n"), HasSubstr("kind: Service\n"), HasSubstr("- muster\n"),
                          HasSubstr("- \"$$(x)\"\n"), HasSubstr("- \"[a,b]\"\n"), HasSubstr("cpu: \"2\"\n")));
}

TEST_F(ManifestCommandTest, MistakesSayWhatIsAccepted) {
  EXPECT_THAT(Mistake({}), HasSubstr("its parameters make 2 runs, a manifest is one; accepted: one value of each"));
  EXPECT_THAT(Mistake({"--form=pod"}), HasSubstr("accepted: jobset, job, tfjob"));
  EXPECT_THAT(Mistake({"--param=rate=1", "--image=i", "--name=A"}), HasSubstr("--name \"A\": accepted is"));
  EXPECT_THAT(Mistake({"--param=rate=1", "--claim=results"}), HasSubstr("--claim \"results\": accepted is NAME:PATH"));
  EXPECT_THAT(Mistake({"--param=rate=1", "--workers=2"}), HasSubstr("--workers: for a PROGRAM behind --"));
  EXPECT_THAT(Mistake({"--param=rate=1", "--", "train"}), HasSubstr("--param: accepted without a PROGRAM"));
  EXPECT_THAT(Mistake({"--", "train"}), HasSubstr("no image; accepted: --image NAME"));
  EXPECT_THAT(Mistake({"digits"}), HasSubstr("put the program and its arguments after --"));
  EXPECT_THAT(Mistake({"--imag=i"}), HasSubstr("\"--imag=i\": not a flag of muster manifest (nearest: --image)"));
  EXPECT_THAT(Mistake({"--image=i", "--resources=cpu=1", "--", "train"}), HasSubstr("\"cpu=1\"; accepted: cpus=N"));
}

}  // namespace
}  // namespace muster::manifest_command_test
