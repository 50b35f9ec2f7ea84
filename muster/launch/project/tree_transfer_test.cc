// A sender and a receiver of a tree, with nothing between them but bytes.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/project/tree_hash.h"
#include "muster/launch/project/tree_receiver.h"
#include "muster/launch/project/tree_sender.h"
#include "muster/transport/messages/codec.h"

namespace muster::tree_transfer_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

class TreeTransferTest : public ::testing::Test {
 protected:
  TreeTransferTest() {
    tree_.Write("main.py", "print(1)\n");
    tree_.Write("data/empty.csv", "");
    tree_.Write("data/same.py", "print(1)\n");
    tree_.Write("run.sh", "#!/bin/sh\n");
    std::filesystem::permissions(tree_ / "run.sh", std::filesystem::perms::owner_all);
    std::filesystem::create_directory(tree_ / "results");
    std::filesystem::create_symlink("data", tree_ / "link");
    std::filesystem::create_symlink("/etc", tree_ / "outside");
  }

  DescribedTree Described() { return DescribeTree(tree_.path()).value(); }
  TreeSender Sender(const DescribedTree& tree, std::vector<std::string> see = {}, std::string nonce = "") {
    return TreeSender({.job = "job-1", .see_paths = std::move(see), .nonce = std::move(nonce)}, tree);
  }
  TreeReceiver Receiver(const std::string& host = "h") { return TreeReceiver({.cache = cache_.path(), .host = host}); }

  // Hands over all that there is, in pieces of that size, until the sender is done or there is nothing left. Returns
  // the first error, the sender's before the receiver's.
  static absl::Status Exchange(TreeSender& sender, TreeReceiver& receiver, size_t piece) {
    absl::Status received, sent;
    for (bool any = true; any && received.ok() && sent.ok();) {
      any = false;
      const absl::StatusOr<std::string> next = sender.Next();
      if (!next.ok()) return next.status();
      for (std::string_view left = *next; !left.empty() && received.ok(); any = true) {
        received = receiver.Take(left.substr(0, piece));
        left.remove_prefix(std::min(piece, left.size()));
      }
      const std::string output = receiver.Output();
      for (std::string_view left = output; !left.empty() && sent.ok(); any = true) {
        sent = sender.Take(left.substr(0, piece));
        left.remove_prefix(std::min(piece, left.size()));
      }
    }
    return sent.ok() ? received : sent;
  }
  // Transfers the tree as it is now.
  absl::Status Transfer(size_t piece = 1 << 16) {
    const DescribedTree tree = Described();
    TreeSender sender = Sender(tree);
    TreeReceiver receiver = Receiver();
    const absl::Status done = Exchange(sender, receiver, piece);
    files_sent_ = sender.files_sent();
    work_ = sender.work();
    EXPECT_EQ(done.ok(), sender.done());
    return done;
  }
  // What a sender says that isn't honest.
  absl::Status Tell(TreeReceiver& receiver, std::vector<TreeFile> files) {
    TreeHash hash;
    for (const TreeFile& file : files) hash.Add(file.file, file.digest);
    EXPECT_EQ(receiver.Take(kTransferGreeting), absl::OkStatus());
    EXPECT_EQ(receiver.Take(TransferFrameOf(TransferKind::kFiles, Encode(FilesMessage{std::move(files)}))),
              absl::OkStatus());
    return receiver.Take(
        TransferFrameOf(TransferKind::kAssemble, Encode(AssembleMessage{.job = "j", .hash = hash.Finish()})));
  }
  static TreeFile Link(const std::string& path, const std::string& to) {
    const ProjectFile file{.path = path, .link_to = to};
    return {.file = file, .digest = DigestBesideFiles(file)};
  }
  std::string InCache(const std::string& name) const { return cache_ / name; }

  const ScratchFolder tree_, cache_;
  uint64_t files_sent_ = 0;
  std::string work_;
};

TEST_F(TreeTransferTest, TheFolderOnTheHostIsTheSameTree) {
  ASSERT_EQ(Transfer(), absl::OkStatus());
  EXPECT_EQ(work_, InCache("work/h/job-1"));
  EXPECT_EQ(DescribeTree(work_)->hash, Described().hash);
  EXPECT_EQ(std::filesystem::read_symlink(work_ + "/outside"), "/etc");
  EXPECT_TRUE(std::filesystem::is_directory(work_ + "/results"));
  EXPECT_EQ(files_sent_, 3U) << "each content once";
  struct stat info;
  ASSERT_EQ(stat(InCache("files").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(TreeTransferTest, ItMakesNoDifferenceHowTheBytesAreCut) {
  ASSERT_EQ(Transfer(/*piece=*/1), absl::OkStatus());
  EXPECT_EQ(DescribeTree(work_)->hash, Described().hash);
}

TEST_F(TreeTransferTest, OnlyWhatHasChangedIsSent) {
  ASSERT_EQ(Transfer(), absl::OkStatus());
  ASSERT_EQ(Transfer(), absl::OkStatus());
  EXPECT_EQ(files_sent_, 0U);
  tree_.Write("main.py", "print(2)\n");
  std::filesystem::remove(tree_ / "run.sh");
  ASSERT_EQ(Transfer(), absl::OkStatus());
  EXPECT_EQ(files_sent_, 1U);
  EXPECT_EQ(DescribeTree(work_)->hash, Described().hash);
  EXPECT_FALSE(std::filesystem::exists(work_ + "/run.sh")) << "the folder is made anew";
}

TEST_F(TreeTransferTest, ALargeTreeNeverHasMoreThanTheCreditOnItsWay) {
  for (int i = 0; i < 3000; ++i) tree_.Write("many/" + std::to_string(i), std::to_string(i));
  tree_.Write("large", std::string(5 << 20, 'x'));
  const DescribedTree tree = Described();
  TreeSender sender = Sender(tree);
  TreeReceiver receiver = Receiver();
  ASSERT_EQ(sender.Take(receiver.Output()), absl::OkStatus());
  while (!sender.done()) {
    std::string on_its_way;
    for (std::string next; !(next = sender.Next().value()).empty();) on_its_way += next;
    ASSERT_LE(on_its_way.size(), kTransferCredit);
    ASSERT_FALSE(on_its_way.empty());
    ASSERT_EQ(receiver.Take(on_its_way), absl::OkStatus());
    ASSERT_EQ(sender.Take(receiver.Output()), absl::OkStatus());
  }
  EXPECT_EQ(DescribeTree(sender.work())->hash, tree.hash);
}

TEST_F(TreeTransferTest, AHostThatSeesTheTreeGetsNothing) {
  const DescribedTree tree = Described();
  const ScratchFolder shared, hidden;
  std::string path, other;
  {
    const NonceFile nonce = NonceFile::Make(shared.path()).value();
    path = nonce.path();
    other = hidden / ".muster-seen-0";
    hidden.Write(".muster-seen-0", "the nonce of another run");
    TreeSender sender = Sender(tree, {path, other, "/nonexistent"}, nonce.nonce());
    TreeReceiver receiver = Receiver();
    ASSERT_EQ(Exchange(sender, receiver, 1 << 16), absl::OkStatus());
    EXPECT_TRUE(sender.done());
    EXPECT_THAT(sender.seen(), ElementsAre(path));
    EXPECT_EQ(sender.work(), "");
    EXPECT_FALSE(cache_.Has("work"));
    // Not the tree's own folder: the tree is sent.
    TreeSender second = Sender(tree, {other, path}, nonce.nonce());
    TreeReceiver receiver_2 = Receiver();
    ASSERT_EQ(Exchange(second, receiver_2, 1 << 16), absl::OkStatus());
    EXPECT_THAT(second.seen(), ElementsAre(path));
    EXPECT_NE(second.work(), "");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TreeTransferTest, ContentsThatAreDamagedOrHalfWrittenAreSentAgain) {
  ASSERT_EQ(Transfer(), absl::OkStatus());
  const ContentStore store(InCache("files"));
  for (const TreeFile& file : Described().files)
    if (file.file.path == "main.py") std::filesystem::resize_file(store.PathOf(file.digest), 3);
  ASSERT_EQ(Transfer(), absl::OkStatus());
  EXPECT_EQ(files_sent_, 1U);
  EXPECT_EQ(DescribeTree(work_)->hash, Described().hash);
}

TEST_F(TreeTransferTest, AnInterruptedTransferLeavesWholeFilesOnly) {
  tree_.Write("large", std::string(3 << 20, 'x'));
  const DescribedTree tree = Described();
  {
    TreeSender sender = Sender(tree);
    TreeReceiver receiver = Receiver();
    ASSERT_EQ(sender.Take(receiver.Output()), absl::OkStatus());
    while (sender.bytes_sent() < (1 << 20)) {
      ASSERT_EQ(receiver.Take(sender.Next().value()), absl::OkStatus());
      ASSERT_EQ(sender.Take(receiver.Output()), absl::OkStatus());
    }
  }
  EXPECT_FALSE(cache_.Has("work"));
  ASSERT_EQ(Transfer(), absl::OkStatus());
  EXPECT_EQ(DescribeTree(work_)->hash, tree.hash);
}

TEST_F(TreeTransferTest, HostsThatShareTheCacheHaveFoldersOfTheirOwn) {
  const DescribedTree tree = Described();
  TreeSender one = Sender(tree), two = Sender(tree);
  TreeReceiver at_one = Receiver("h1"), at_two = Receiver("h2");
  for (bool any = true; any;) {  // in turns
    any = false;
    for (auto& [sender, receiver] :
         std::vector<std::pair<TreeSender*, TreeReceiver*>>{{&one, &at_one}, {&two, &at_two}}) {
      const std::string next = sender->Next().value();
      any |= !next.empty();
      ASSERT_EQ(receiver->Take(next), absl::OkStatus());
      ASSERT_EQ(sender->Take(receiver->Output()), absl::OkStatus());
    }
  }
  EXPECT_EQ(one.work(), InCache("work/h1/job-1"));
  EXPECT_EQ(DescribeTree(one.work())->hash, tree.hash);
  EXPECT_EQ(DescribeTree(two.work())->hash, tree.hash);
}

TEST_F(TreeTransferTest, WhatWouldBeWrittenElsewhereIsRefused) {
  const std::string digest(kDigestBytes, 'd');
  const auto why = [&](const std::vector<TreeFile>& files) {
    TreeReceiver receiver = Receiver();
    return std::string(Tell(receiver, files).message());
  };
  EXPECT_THAT(why({{{.path = "../x"}, digest}}), HasSubstr("can't have the path '../x'"));
  EXPECT_THAT(why({{{.path = "/x"}, digest}}), HasSubstr("can't have the path"));
  EXPECT_THAT(why({{{.path = "a//x"}, digest}}), HasSubstr("can't have the path"));
  EXPECT_THAT(why({Link("a", "/tmp"), {{.path = "a/x"}, digest}}), HasSubstr("is below one that is no folder"));
  EXPECT_THAT(why({{{.path = "b"}, digest}, {{.path = "a"}, digest}}), HasSubstr("comes after"));
  EXPECT_THAT(why({{{.path = "a"}, digest}, {{.path = "a"}, digest}}), HasSubstr("comes after"));
  EXPECT_THAT(why({{{.path = "a"}, "short"}}), HasSubstr("can't have such a file"));
  EXPECT_THAT(why({{{.path = "a", .bytes = -1}, digest}}), HasSubstr("can't have such a file"));
  EXPECT_FALSE(cache_.Has("work"));
}

TEST_F(TreeTransferTest, OtherContentsThanAnnouncedAreRefused) {
  TreeReceiver receiver = Receiver();
  ASSERT_EQ(Tell(receiver, {{{.path = "a", .bytes = 1}, std::string(kDigestBytes, 'd')}}), absl::OkStatus());
  const absl::Status taken = receiver.Take(TransferFrameOf(TransferKind::kContents, Encode(ContentsMessage{"x"})));
  EXPECT_TRUE(absl::IsDataLoss(taken)) << taken;
  EXPECT_THAT(receiver.Output(), HasSubstr(".a was changed while it was copied; start again"));
  EXPECT_FALSE(cache_.Has("work"));
}

TEST_F(TreeTransferTest, AFolderThatCannotBeMadeIsNamedToTheSender) {
  cache_.Write("files", "no folder");
  const DescribedTree tree = Described();
  TreeSender sender = Sender(tree);
  TreeReceiver receiver = Receiver();
  const absl::Status done = Exchange(sender, receiver, 1 << 16);
  EXPECT_TRUE(absl::IsFailedPrecondition(done)) << "it is what the sender was told: " << done;
  EXPECT_THAT(std::string(done.message()), HasSubstr(InCache("files")));
  EXPECT_FALSE(sender.done());
}

TEST_F(TreeTransferTest, ATreeThatIsChangedMeanwhileIsNamed) {
  const DescribedTree tree = Described();
  TreeSender sender = Sender(tree);
  TreeReceiver receiver = Receiver();
  std::filesystem::remove(tree_ / "main.py");
  std::filesystem::remove(tree_ / "data/same.py");
  const absl::Status done = Exchange(sender, receiver, 1 << 16);
  EXPECT_TRUE(absl::IsDataLoss(done)) << done;
}

TEST_F(TreeTransferTest, AnotherProgramInPlaceOfMusterIsNoticed) {
  const DescribedTree tree = Described();
  TreeSender sender = Sender(tree);
  EXPECT_THAT(std::string(sender.Take("Welcome to h!\n").message()), HasSubstr("another program answers"));
}

TEST_F(TreeTransferTest, OldContentsAndFoldersOfDeadJobsAreSwept) {
  ASSERT_EQ(Transfer(), absl::OkStatus());
  cache_.Write("work/other/job-1/x", "another host's");
  cache_.Write("work/h/job-2/x", "");
  cache_.Write("work/h/.tmp-0123/work/x", "a killed process's");
  const ContentStore store(InCache("files"));
  const std::string digest = Described().files.front().digest;
  const ReceivePlace place{.cache = cache_.path(), .host = "h"};
  std::vector<std::string> asked;
  SweepReceived(place, absl::Now(), [&](const std::string& job) {
    asked.push_back(job);
    return job == "job-2";
  });
  EXPECT_THAT(asked, ::testing::UnorderedElementsAre("job-1", "job-2"));
  EXPECT_FALSE(cache_.Has("work/h/job-1"));
  EXPECT_FALSE(cache_.Has("work/h/.tmp-0123"));
  EXPECT_TRUE(cache_.Has("work/h/job-2/x"));
  EXPECT_TRUE(cache_.Has("work/other/job-1/x"));
  EXPECT_TRUE(store.Has(digest));
  SweepReceived(place, absl::Now() + kContentsKept + absl::Hours(1), [](const std::string&) { return true; });
  EXPECT_FALSE(store.Has(digest));
  EXPECT_FALSE(cache_.Has("work/other")) << "of a boot long ago";
  EXPECT_TRUE(cache_.Has("work/h/job-2/x"));
}

TEST_F(TreeTransferTest, WhatAKilledReceiverHasLeftGoesAfterADay) {
  cache_.Write("files/ab/.tmp-0123", "half a file");
  cache_.Write("setup/0123/.muster-done", "");
  const ReceivePlace place{.cache = cache_.path(), .host = "h"};
  const auto lives = [](const std::string&) { return true; };
  SweepReceived(place, absl::Now() + absl::Hours(23), lives);
  EXPECT_TRUE(cache_.Has("files/ab/.tmp-0123"));
  SweepReceived(place, absl::Now() + absl::Hours(25), lives);
  EXPECT_FALSE(cache_.Has("files/ab/.tmp-0123"));
  EXPECT_TRUE(cache_.Has("setup/0123"));
  SweepReceived(place, absl::Now() + kContentsKept + absl::Hours(1), lives);
  EXPECT_FALSE(cache_.Has("setup/0123"));
}

TEST_F(TreeTransferTest, ACacheThatOthersMayWriteIsRefused) {
  std::filesystem::permissions(cache_.path(), std::filesystem::perms::all);
  const absl::Status refused = Transfer();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("others may write there; chmod go-w makes it private"));
}

TEST_F(TreeTransferTest, AnEmptyFileMayBeAllThatIsMissing) {
  std::filesystem::remove(tree_ / "data/empty.csv");
  ASSERT_EQ(Transfer(), absl::OkStatus());
  tree_.Write("zero", "");
  ASSERT_EQ(Transfer(), absl::OkStatus());
  EXPECT_EQ(files_sent_, 1U);
  EXPECT_TRUE(std::filesystem::exists(work_ + "/zero"));
}

TEST_F(TreeTransferTest, AFileThatChangesOnTheWayIsNamed) {
  const DescribedTree tree = Described();
  tree_.Write("main.py", "print(2)\n");
  tree_.Write("data/same.py", "print(2)\n");
  TreeSender sender = Sender(tree);
  TreeReceiver receiver = Receiver();
  EXPECT_THAT(std::string(Exchange(sender, receiver, 1 << 16).message()),
              HasSubstr("data/same.py was changed while it was copied; start again"));
}

TEST(PlaceToReceiveTest, XdgCacheHomeCounts) {
  EXPECT_EQ(PlaceToReceive("/h", "", "h")->cache, "/h/.cache/muster");
  EXPECT_EQ(PlaceToReceive("/h", "/big", "h")->cache, "/big/muster");
  EXPECT_EQ(PlaceToReceive("/h", "relative", "h")->cache, "/h/.cache/muster");
  EXPECT_FALSE(PlaceToReceive("", "", "h").ok());
  EXPECT_FALSE(PlaceToReceive("/h", "", "..").ok());
}

// The folder for what tasks write is made where a host doesn't see the sender's, with the tree or without.
TEST_F(TreeTransferTest, AHostThatDoesntSeeTheOutputGetsAFolderThatStays) {
  const ScratchFolder shared, outputs;
  const DescribedTree tree = Described();
  const NonceFile code = NonceFile::Make(shared.path()).value();
  for (const bool sees_code : {true, false}) {
    TreeSender sender({.job = "job-1",
                       .see_paths = {sees_code ? code.path() : "/no/such/file", "/no/such/output"},
                       .nonce = code.nonce(),
                       .output_name = "home-1/4.2"},
                      tree);
    TreeReceiver receiver({.cache = cache_.path(), .host = "h", .outputs = outputs.path()});
    ASSERT_EQ(Exchange(sender, receiver, 1 << 16), absl::OkStatus());
    ASSERT_TRUE(sender.done());
    EXPECT_EQ(sender.work().empty(), sees_code);
    EXPECT_EQ(sender.output(), outputs / "home-1/4.2");
    EXPECT_TRUE(std::filesystem::is_directory(outputs / "home-1/4.2"));
    outputs.Write("home-1/4.2/kept", "");
  }
  EXPECT_TRUE(std::filesystem::exists(outputs / "home-1/4.2/kept"));
  const NonceFile output = NonceFile::Make(shared.path(), code.nonce()).value();
  TreeSender sees({.job = "j", .see_paths = {code.path(), output.path()}, .nonce = code.nonce(), .output_name = "x"},
                  tree);
  TreeReceiver receiver({.cache = cache_.path(), .host = "h", .outputs = outputs.path()});
  ASSERT_EQ(Exchange(sees, receiver, 1 << 16), absl::OkStatus());
  EXPECT_EQ(sees.output(), "");
}

TEST_F(TreeTransferTest, AFolderForOutputHasAHarmlessName) {
  for (const char* name : {"..", "a/../b", "/etc", "", "a//b", ".ssh", "a b"}) {
    TreeReceiver receiver({.cache = cache_.path(), .host = "h", .outputs = cache_ / "out"});
    EXPECT_EQ(receiver.Take(kTransferGreeting), absl::OkStatus());
    EXPECT_FALSE(
        receiver.Take(TransferFrameOf(TransferKind::kMakeOutput, Encode(MakeOutputMessage{.name = name}))).ok())
        << name;
  }
  EXPECT_FALSE(std::filesystem::exists(cache_ / "out"));
}

TEST_F(TreeTransferTest, FilesThatCantBeReadAreLeftOutWhereThatIsAskedFor) {
  const auto describe = [&](std::function<void(const absl::Status& why)> unreadable) {
    tree_.Write("data/same.py", "print(1)\n");
    return DescribeTree(tree_.path(), {.between = [&] { std::filesystem::remove(tree_ / "data/same.py"); },
                                       .unreadable = std::move(unreadable)});
  };
  EXPECT_EQ(describe(nullptr).status().code(), absl::StatusCode::kAborted);
  std::vector<std::string> left_out;
  const auto described = describe([&](const absl::Status& why) { left_out.emplace_back(why.message()); });
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_THAT(left_out, ElementsAre(HasSubstr("data/same.py vanished")));
  TreeSender sender = Sender(*described);
  TreeReceiver receiver = Receiver();
  EXPECT_EQ(Exchange(sender, receiver, 1 << 16), absl::OkStatus());
  EXPECT_EQ(sender.files_sent(), described->files.size() - 3) << "all but a folder and two links";
}

// The list is made as it goes: a tree of many files has no second copy of all names in memory, for any host.
TEST_F(TreeTransferTest, AListThatNeedsManyFrames) {
  for (int i = 0; i < 2000; ++i) tree_.Write("many/" + std::string(100, 'x') + std::to_string(i), "same");
  EXPECT_EQ(Transfer(1 << 12), absl::OkStatus());
  EXPECT_EQ(std::filesystem::exists(work_ + "/many/" + std::string(100, 'x') + "1999"), true);
}

}  // namespace
}  // namespace muster::tree_transfer_test
