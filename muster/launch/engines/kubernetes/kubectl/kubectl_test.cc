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
  EXPECT_EQ(kubectl.Resolve(), absl::OkStatus());
  EXPECT_EQ(kubectl.place().context, "now");
  EXPECT_THAT(kubectl.place().name_space, HasSubstr("--context=now"));
  EXPECT_EQ(KubernetesPlace::Parse(kubectl.place().text()), kubectl.place());
  Program("[ $2 = view ] || echo now");
  Kubectl in_default({.kubectl = scratch_ / "kubectl"}, environment_);
  EXPECT_EQ(in_default.Resolve(), absl::OkStatus());
  EXPECT_EQ(in_default.place().name_space, "default");
  EXPECT_EQ(KubernetesPlace::Parse("nonsense").kubectl, "kubectl");
}

TEST_F(KubectlTest, OnlyItsOwnWordsMeanThatThereIsNoContext) {
  const auto resolve = [this](const std::string& script, absl::Duration patience = absl::Minutes(1)) {
    Program(script);
    Kubectl kubectl({.kubectl = scratch_ / "kubectl"}, environment_);
    const absl::Status resolved = kubectl.Resolve(patience);
    EXPECT_EQ(kubectl.place().context, "");
    return resolved;
  };
  EXPECT_EQ(resolve("echo 'error: current-context is not set' >&2; exit 1"), absl::OkStatus());
  const absl::Status broken = resolve("echo 'error: error loading config file \"/k\": yaml' >&2; exit 1");
  EXPECT_TRUE(absl::IsInvalidArgument(broken)) << broken;
  EXPECT_THAT(std::string(broken.message()), AllOf(HasSubstr("doesn't say where the job would be: "),
                                                   HasSubstr("kubectl config current-context"), HasSubstr("yaml")));
  EXPECT_TRUE(absl::IsInvalidArgument(resolve("exit 1")));
  const absl::Status late = resolve("echo now", absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("kubectl doesn't answer within 0: "));
}

TEST_F(KubectlTest, ANamespaceThatItDoesntSayIsNotTheUsualOne) {
  Program("[ $2 = view ] || exec echo now; exit 1");
  Kubectl kubectl({.kubectl = scratch_ / "kubectl"}, environment_);
  EXPECT_TRUE(absl::IsInvalidArgument(kubectl.Resolve()));
  EXPECT_EQ(kubectl.place().name_space, "");
  Program("echo 'error: cannot locate context other' >&2; exit 1");
  Kubectl other({.kubectl = scratch_ / "kubectl", .context = "other"}, environment_);
  EXPECT_THAT(std::string(other.Resolve().message()),
              AllOf(HasSubstr("kubectl knows no context 'other'"), HasSubstr("get-contexts")));
}

TEST_F(KubectlTest, AContextThatComesLaterIsAnotherPlace) {
  Program("echo now");
  EXPECT_EQ(InPlace().CheckSamePlace(), absl::OkStatus());
  EXPECT_FALSE(scratch_.Has("words")) << "it needn't ask";
  EXPECT_TRUE(absl::IsUnavailable(InPlace("").CheckSamePlace()));
  Program("echo 'error: current-context is not set' >&2; exit 1");
  EXPECT_EQ(InPlace("").CheckSamePlace(), absl::OkStatus());
  Program("echo 'error: yaml' >&2; exit 1");
  EXPECT_TRUE(absl::IsUnavailable(InPlace("").CheckSamePlace()));
}

TEST_F(KubectlTest, WhatMayBeTakenTheNextTimeIsNoRefusal) {
  for (const char* words :
       {"Error from server (InternalError): Internal error occurred: failed calling webhook \"v.x\": failed to call "
        "webhook: Post \"https://x/?timeout=10s\": context deadline exceeded; service \"x\" does not exist",
        "Error from server (Conflict): Operation cannot be fulfilled on resourcequotas \"q\": the object has been "
        "modified; please apply your changes to the latest version and try again",
        "Error from server (TooManyRequests): the server has received too many requests",
        "Error from server (ServiceUnavailable): the server is currently unable to handle the request",
        "Error from server (Timeout): the server was unable to return a response in the time allotted",
        "Error from server: etcdserver: leader changed", "Error from server: rpc error: no leader",
        "an error on the server (\"\") has prevented the request from succeeding (post pods)"}) {
    const absl::Status status = Refused(words);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("(context c, namespace team) can't do now what is asked for: "), HasSubstr(words),
                      HasSubstr("; try again")));
  }
  for (const char* words : {"Error from server (AlreadyExists): pods \"a\" already exists",
                            "Error from server (BadRequest): admission webhook \"x\" denied the request: no"})
    EXPECT_TRUE(absl::IsInvalidArgument(Refused(words))) << words;
}

// A collector has another working folder than the command that has submitted the job.
TEST(KubectlPlaceTest, FilesOfThePlaceAreAbsolute) {
  const std::string here = std::filesystem::current_path().string();
  Kubectl stated({.kubectl = "./bin/kubectl"}, {"PATH=/usr/bin:/bin", "KUBECONFIG=a/b:/c::d"});
  EXPECT_TRUE(absl::IsNotFound(stated.Resolve()));
  EXPECT_EQ(stated.place().kubectl, here + "/bin/kubectl");
  EXPECT_EQ(stated.place().kubeconfig, absl::StrCat(here, "/a/b:/c::", here, "/d"));
  Kubectl usual({.kubectl = "no-such-kubectl"}, {"PATH=/usr/bin:/bin"});
  EXPECT_TRUE(absl::IsNotFound(usual.Resolve()));
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
