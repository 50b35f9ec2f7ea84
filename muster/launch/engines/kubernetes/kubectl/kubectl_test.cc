#include "muster/launch/engines/kubernetes/kubectl/kubectl.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::kubectl_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

class KubectlTest : public ::testing::Test {
 protected:
  // kubectl is a script that the test writes.
  void Program(const std::string& script) const {
    scratch_.Write("kubectl", absl::StrCat("#!/bin/sh\necho \"$@\" >>", scratch_ / "words", "\n", script, "\n"));
    chmod((scratch_ / "kubectl").c_str(), 0700);
  }
  Kubectl InPlace(const std::string& context = "c", const std::string& name_space = "team") const {
    return Kubectl({.kubectl = scratch_ / "kubectl", .context = context, .name_space = name_space}, environment_);
  }
  absl::Status Refused(const std::string& words) const {
    Program(absl::StrCat("echo '", words, "' >&2; exit 1"));
    return InPlace().Run({"get", "pods"}).status();
  }

  const ScratchFolder scratch_;
  std::vector<std::string> environment_ = {"PATH=/usr/bin:/bin", "KUBECONFIG=/k", "MUSTER_JOB_TOKEN=t"};
};

TEST_F(KubectlTest, HasItsPlaceItsInputAndNoSecret) {
  Program("cat; echo \"$KUBECONFIG ${MUSTER_JOB_TOKEN:-none}\"");
  EXPECT_EQ(*InPlace().Run({"create", "--filename=-"}, "input\n"), "input\n/k none\n");
  EXPECT_EQ(scratch_.Read("words"), "--context=c --namespace=team create --filename=-\n");
}

TEST_F(KubectlTest, MuchMayBeWrittenAndRead) {
  Program("cat");
  const std::string much(3 << 20, 'x');
  EXPECT_EQ(*InPlace().Run({"x"}, much), much);
  Program("exit 0");
  EXPECT_EQ(*InPlace().Run({"x"}, much), "") << "it needn't read";
}

TEST_F(KubectlTest, EachErrorHasItsWordsAndSaysWhatToDo) {
  const absl::Status context = Refused("error: context \"c\" does not exist");
  EXPECT_TRUE(absl::IsInvalidArgument(context));
  EXPECT_THAT(std::string(context.message()), AllOf(HasSubstr("kubectl knows no context"), HasSubstr("get-contexts")));
  const absl::Status down = Refused("The connection to the server 10.0.0.1:6443 was refused - did you specify ...");
  EXPECT_TRUE(absl::IsUnavailable(down));
  EXPECT_THAT(std::string(down.message()),
              HasSubstr("(context c, namespace team) doesn't answer kubectl: The connection"));
  EXPECT_TRUE(absl::IsUnavailable(Refused("Unable to connect to the server: dial tcp: lookup x: no such host")));
  EXPECT_TRUE(absl::IsPermissionDenied(Refused("error: You must be logged in to the server (Unauthorized)")));
  const absl::Status forbidden = Refused("Error from server (Forbidden): pods is forbidden: User \"u\" cannot create");
  EXPECT_TRUE(absl::IsPermissionDenied(forbidden));
  EXPECT_THAT(std::string(forbidden.message()), HasSubstr("refuses what is asked for: Error from server (Forbidden)"));
  const absl::Status quota = Refused("Error from server (Forbidden): pods \"a\" is forbidden: exceeded quota: q, used");
  EXPECT_TRUE(absl::IsResourceExhausted(quota));
  EXPECT_THAT(std::string(quota.message()), HasSubstr("the namespace's quota has no room for all pods"));
  EXPECT_THAT(std::string(Refused("Error from server (NotFound): namespaces \"team\" not found").message()),
              HasSubstr("there is no namespace 'team'"));
  EXPECT_TRUE(absl::IsInvalidArgument(Refused("The Pod is invalid: spec.containers[0].image: Required value")));
}

TEST_F(KubectlTest, WithoutItOrWithoutAnyClusterTheUserReadsThat) {
  EXPECT_TRUE(absl::IsNotFound(InPlace().Run({"get"}).status()));
  EXPECT_THAT(std::string(InPlace().Run({"get"}).status().message()), HasSubstr("install kubectl, or say where it is"));
  Program("echo 'The connection to the server localhost:8080 was refused' >&2; exit 1");
  EXPECT_THAT(std::string(InPlace("").Run({"get"}).status().message()),
              HasSubstr("its configuration has no current context"));
}

TEST_F(KubectlTest, ThePlaceIsWhereKubectlIsNow) {
  Program("case $2 in current-context) echo now;; view) echo team-of-$*;; esac");
  Kubectl kubectl({.kubectl = scratch_ / "kubectl"}, environment_);
  kubectl.Resolve();
  EXPECT_EQ(kubectl.place().context, "now");
  EXPECT_THAT(kubectl.place().name_space, HasSubstr("--context=now"));
  EXPECT_EQ(KubernetesPlace::Parse(kubectl.place().text()), kubectl.place());
  Program("[ $2 = current-context ] && echo now");
  Kubectl in_default({.kubectl = scratch_ / "kubectl"}, environment_);
  in_default.Resolve();
  EXPECT_EQ(in_default.place().name_space, "default");
  EXPECT_EQ(KubernetesPlace::Parse("nonsense").kubectl, "kubectl");
}

// A collector has another working folder than the command that has submitted the job.
TEST(KubectlPlaceTest, FilesOfThePlaceAreAbsolute) {
  const std::string here = std::filesystem::current_path().string();
  Kubectl stated({.kubectl = "./bin/kubectl"}, {"PATH=/usr/bin:/bin", "KUBECONFIG=a/b:/c::d"});
  stated.Resolve();
  EXPECT_EQ(stated.place().kubectl, here + "/bin/kubectl");
  EXPECT_EQ(stated.place().kubeconfig, absl::StrCat(here, "/a/b:/c::", here, "/d"));
  Kubectl usual({.kubectl = "no-such-kubectl"}, {"PATH=/usr/bin:/bin"});
  usual.Resolve();
  EXPECT_EQ(usual.place().kubectl, "no-such-kubectl");
  EXPECT_EQ(usual.place().kubeconfig, "");
}

TEST(WordsOfKubectlTest, ItsLogAndItsWarningsAreLeftOut) {
  EXPECT_EQ(WordsOfKubectl("E1129 20:35:47.671722   11497 memcache.go:265] \"Unhandled Error\"\nWarning: old\n first \n"
                           "second\nsecond\n"),
            "first; second");
}

}  // namespace
}  // namespace muster::kubectl_test
