#include "muster/store/messages/messages.h"

#include <gmock/gmock.h>

#include <limits>
#include <new>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <random>
#include <string>

#include "muster/store/testing/simulated_store.h"

namespace muster::messages_test {
namespace {

constexpr Stamp kStamp = {3, std::numeric_limits<uint64_t>::max(), uint64_t{1} << 63};

StoreModel SampleModel() {
  StoreModel model = ModelOn({{.name = "w", .dtype = DType::kFloat64, .shape = {6, 2}},
                              {.name = "", .shape = {}},
                              {.name = "stats", .dtype = DType::kInt64, .shape = {0}, .kind = VariableKind::kBuffer},
                              {.name = "table",
                               .shape = {4, 2},
                               .kind = VariableKind::kRows,
                               .table = {RowPartition::kDiv, RowInitializer::Normal(43, 47, 53)}}},
                             {.kind = RuleKind::kMomentum,
                              .learning_rate = 1e-300,
                              .momentum = 0.5,
                              .nesterov = true,
                              .beta1 = 0.25,
                              .beta2 = 0.125,
                              .epsilon = 0.75,
                              .weight_decay = 0.0625,
                              .initial_accumulator = 3,
                              .learning_rate_decay = 5,
                              .rho = 0.375,
                              .centered = true,
                              .learning_rate_power = -7,
                              .l1 = 11,
                              .l2 = 13,
                              .clip = {ClipKind::kGlobalNorm, 17},
                              .schedule = {.kind = ScheduleKind::kPolynomial,
                                           .decay_steps = 19,
                                           .decay_rate = 23,
                                           .end_learning_rate = 29,
                                           .power = 31,
                                           .cycle = true,
                                           .alpha = 0.1875,
                                           .warmup_steps = 37,
                                           .warmup_from = 41}},
                             1, 0, {.kind = Partitioning::Kind::kFixed, .shards = 3});
  model.slices.back().row_step = 59;
  return model;
}

// Checks that a message survives the wire: encoding the decoded message gives the same bytes. Every field has its own
// value in the sample, so that a field that is forgotten or mixed up changes them.
template <typename Message>
Message RoundTrip(const Message& message) {
  const std::string bytes = Encode(message);
  Message decoded;
  EXPECT_EQ(Decode(bytes, decoded), absl::OkStatus());
  EXPECT_EQ(Encode(decoded), bytes);
  return decoded;
}

void ExpectStamp(const Stamp& stamp) {
  EXPECT_EQ(stamp.client, kStamp.client);
  EXPECT_EQ(stamp.incarnation, kStamp.incarnation);
  EXPECT_EQ(stamp.sequence, kStamp.sequence);
}

void ExpectModel(const StoreModel& model) {
  const StoreModel sample = SampleModel();
  EXPECT_EQ(CompareModels(sample, model, "x"), absl::OkStatus());
  EXPECT_EQ(model.variables, sample.variables);
  EXPECT_EQ(model.optimizer, sample.optimizer);
  ASSERT_EQ(model.slices.size(), sample.slices.size());
  for (size_t i = 0; i < model.slices.size(); ++i) {
    EXPECT_EQ(model.slices[i].shape, sample.slices[i].shape);
    EXPECT_EQ(model.slices[i].elements, sample.slices[i].elements);
    EXPECT_EQ(model.slices[i].bytes, sample.slices[i].bytes);
    EXPECT_EQ(model.slices[i].offset, sample.slices[i].offset);
    EXPECT_EQ(model.slices[i].shard, sample.slices[i].shard);
    EXPECT_EQ(model.slices[i].ps, sample.slices[i].ps);
    EXPECT_EQ(model.slices[i].row_step, sample.slices[i].row_step);
  }
}

TEST(MessagesTest, JoinRoundTrips) {
  const auto request = RoundTrip(JoinRequest{"worker:1", kStamp.incarnation, true, "host, pid 12"});
  EXPECT_EQ(request.task, "worker:1");
  EXPECT_EQ(request.incarnation, kStamp.incarnation);
  EXPECT_TRUE(request.chief);
  EXPECT_EQ(request.where, "host, pid 12");
  const auto reply = RoundTrip(JoinReply{7, 8, true, false, 9, 10, -11});
  EXPECT_EQ(reply.client, 7u);
  EXPECT_EQ(reply.last_sequence, 8u);
  EXPECT_TRUE(reply.ready);
  EXPECT_FALSE(reply.ended);
  EXPECT_EQ(reply.ps_incarnation, 9u);
  EXPECT_EQ(reply.chief_epoch, 10u);
  EXPECT_EQ(reply.global_step, -11);
  EXPECT_TRUE(RoundTrip(JoinReply{.ended = true}).ended);
}

TEST(MessagesTest, InitializeAndAwaitReadyRoundTrip) {
  const auto initialize =
      RoundTrip(InitializeRequest{kStamp, 4, SampleModel(), true, {1, 0, std::numeric_limits<uint64_t>::max()}, 5, 6});
  ExpectStamp(initialize.stamp);
  ExpectModel(initialize.model);
  EXPECT_EQ(initialize.chief_epoch, 4u);
  EXPECT_TRUE(initialize.with_slots);
  EXPECT_THAT(initialize.steps, ::testing::ElementsAre(1, 0, std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(initialize.global_step, 5);
  EXPECT_EQ(initialize.minibatches, 6);
  const auto await_ready = RoundTrip(AwaitReadyRequest{kStamp, SampleModel()});
  ExpectStamp(await_ready.stamp);
  ExpectModel(await_ready.model);
  EXPECT_EQ(RoundTrip(AwaitReadyReply{std::numeric_limits<int64_t>::max()}).global_step,
            std::numeric_limits<int64_t>::max());
}

TEST(MessagesTest, RowsRoundTrip) {
  const auto request = RoundTrip(RowsRequest{kStamp, 4, 5, 6, -8, 0.5, true});
  ExpectStamp(request.stamp);
  EXPECT_EQ(request.slice, 4u);
  EXPECT_EQ(request.generation, 5u);
  EXPECT_EQ(request.rows, 6u);
  EXPECT_EQ(request.global_step, -8);
  EXPECT_EQ(request.scale, 0.5);
  EXPECT_TRUE(request.last);
  InitializeRequest initialize;
  initialize.with_rows = true;
  EXPECT_TRUE(RoundTrip(initialize).with_rows);
}

TEST(MessagesTest, PushPullRoundTrips) {
  const auto request = RoundTrip(PushPullRequest{kStamp, {0, 5, 4000000000u}, PullWhat::kEverything, 6, 7});
  ExpectStamp(request.stamp);
  EXPECT_THAT(request.pushed, ::testing::ElementsAre(0, 5, 4000000000u));
  EXPECT_EQ(request.pull, PullWhat::kEverything);
  EXPECT_EQ(request.pulled_version, 6u);
  EXPECT_EQ(request.minibatches, 7u);
  const auto reply = RoundTrip(PushPullReply{1, 2, -3});
  EXPECT_EQ(reply.version, 1u);
  EXPECT_EQ(reply.staleness, 2u);
  EXPECT_EQ(reply.global_step, -3);
}

TEST(MessagesTest, ScalesOfAPushRoundTrip) {
  PushPullRequest request;
  request.with_pulled = true;
  request.compensation = 0.25;
  request.adaptive = 0.5;
  request.staleness_scale = StalenessScale::kInverse;
  const PushPullRequest decoded = RoundTrip(request);
  EXPECT_TRUE(decoded.with_pulled);
  EXPECT_EQ(decoded.compensation, 0.25);
  EXPECT_EQ(decoded.adaptive, 0.5);
  EXPECT_EQ(decoded.staleness_scale, StalenessScale::kInverse);
  request.Clear();
  EXPECT_EQ(request.staleness_scale, StalenessScale::kNone) << "a request's memory is used again";
  EXPECT_EQ(request.adaptive, 0);
}

TEST(MessagesTest, TheWorkersOrderRoundTrips) {
  const auto question = RoundTrip(AwaitTurnRequest{kStamp, 4, std::numeric_limits<uint64_t>::max(), 5});
  ExpectStamp(question.stamp);
  EXPECT_EQ(question.generation, 4u);
  EXPECT_EQ(question.clock, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(question.local_step, 5u);
  EXPECT_EQ(RoundTrip(AwaitTurnReply{6}).clock, 6u);
  StoreModel model = SampleModel();
  model.ordered = true;
  EXPECT_TRUE(RoundTrip(model).ordered);
  EXPECT_FALSE(RoundTrip(SampleModel()).ordered);
}

TEST(MessagesTest, TheRestRoundTrips) {
  const HeartbeatRequest beat = RoundTrip(HeartbeatRequest{kStamp, 9, 7, 5, 1000, "evaluating"});
  ExpectStamp(beat.stamp);
  EXPECT_EQ(std::tie(beat.beat, beat.heard, beat.steps, beat.step_nanos, beat.busy),
            std::make_tuple(9u, 7u, 5u, 1000u, std::string("evaluating")));
  ExpectStamp(RoundTrip(DoneRequest{kStamp}).stamp);
  const auto opened = RoundTrip(ExportPartRequest{kStamp, 3, 2});
  ExpectStamp(opened.stamp);
  EXPECT_EQ(std::tie(opened.hold, opened.chief_epoch), std::make_tuple(3u, 2u));
  const auto fetch = RoundTrip(FetchPartRequest{kStamp, 2, 3, uint64_t{1} << 40, 5});
  ExpectStamp(fetch.stamp);
  EXPECT_EQ(std::tie(fetch.chief_epoch, fetch.hold, fetch.first, fetch.bytes),
            std::make_tuple(2u, 3u, uint64_t{1} << 40, 5u));
  const auto sees = RoundTrip(SeesDirectoryRequest{kStamp, 2, "dir", "id"});
  ExpectStamp(sees.stamp);
  EXPECT_EQ(sees.chief_epoch, 2u);
  EXPECT_EQ(sees.directory + sees.save_id, "dirid");
  EXPECT_TRUE(RoundTrip(SeesDirectoryReply{true}).sees);
  EXPECT_EQ(RoundTrip(ShutdownRequest{std::string("why\0not", 7)}).reason, std::string("why\0not", 7));
  const auto save = RoundTrip(SavePartRequest{kStamp, 2, "dir", "id", "file"});
  ExpectStamp(save.stamp);
  EXPECT_EQ(save.chief_epoch, 2u);
  EXPECT_EQ(save.directory + save.save_id + save.file, "diridfile");
  const auto saved = RoundTrip(SavePartReply{1, 0xffffffff});
  EXPECT_EQ(saved.bytes, 1u);
  EXPECT_EQ(saved.crc32c, 0xffffffffu);
  EXPECT_THAT(RoundTrip(ExportPartReply{{3, 2, 1}}).steps, ::testing::ElementsAre(3, 2, 1));
  const auto commit = RoundTrip(CommitCheckpointRequest{kStamp, 2, "dir", "{}"});
  ExpectStamp(commit.stamp);
  EXPECT_EQ(commit.chief_epoch, 2u);
  EXPECT_EQ(commit.directory + commit.manifest, "dir{}");
}

constexpr uint64_t kHighest = std::numeric_limits<uint64_t>::max();

TEST(MessagesTest, DirectApplyRoundTrips) {
  ExpectStamp(RoundTrip(OpenDirectRequest{kStamp}).stamp);
  const auto open = RoundTrip(OpenDirectReply{"muster-0123", "a ticket", 4000000000u});
  EXPECT_EQ(open.socket, "muster-0123");
  EXPECT_EQ(open.ticket, "a ticket");
  EXPECT_EQ(open.clients, 4000000000u);
  const auto enter = RoundTrip(EnterDirectRequest{kStamp, std::string("t\0t", 3)});
  ExpectStamp(enter.stamp);
  EXPECT_EQ(enter.ticket, std::string("t\0t", 3));
}

TEST(MessagesTest, TheCutOfACheckpointRoundTrips) {
  const auto hold = RoundTrip(HoldRequest{kStamp, 4});
  ExpectStamp(hold.stamp);
  EXPECT_EQ(hold.chief_epoch, 4u);
  const auto held = RoundTrip(HoldReply{{5, 0, kHighest}, 6});
  EXPECT_THAT(held.begun, ::testing::ElementsAre(5, 0, kHighest));
  EXPECT_EQ(held.round, 6u);
  const auto mark = RoundTrip(MarkRequest{kStamp, 4, 7, {kHighest, 0, 8}, 9, true});
  ExpectStamp(mark.stamp);
  EXPECT_EQ(mark.chief_epoch, 4u);
  EXPECT_EQ(mark.hold, 7u);
  EXPECT_THAT(mark.through, ::testing::ElementsAre(kHighest, 0, 8));
  EXPECT_EQ(mark.round, 9u);
  EXPECT_TRUE(mark.release);
  const auto marked = RoundTrip(MarkReply{-10, {0, 4000000000u}, {11}, "", {12}});
  EXPECT_EQ(marked.global_step, -10);
  EXPECT_THAT(marked.missing, ::testing::ElementsAre(0, 4000000000u));
  EXPECT_THAT(marked.uncounted, ::testing::ElementsAre(11));
  EXPECT_THAT(marked.counted, ::testing::ElementsAre(12));
}

TEST(MessagesTest, BarriersAndLoadsRoundTrip) {
  const auto barrier = RoundTrip(BarrierRequest{kStamp, "start", 3, true});
  ExpectStamp(barrier.stamp);
  EXPECT_EQ(barrier.name, "start");
  EXPECT_EQ(barrier.parties, 3u);
  EXPECT_TRUE(barrier.elastic);
  EXPECT_EQ(RoundTrip(LoadCheckpointRequest{"dir/model.ckpt-1"}).path, "dir/model.ckpt-1");
  EXPECT_EQ(RoundTrip(LoadCheckpointReply{-4}).global_step, -4);
  const auto report = RoundTrip(ReportLoadRequest{kStamp, "damaged", 5});
  ExpectStamp(report.stamp);
  EXPECT_EQ(report.error, "damaged");
  EXPECT_EQ(report.global_step, 5);
}

TEST(MessagesTest, WorkRoundTrips) {
  const auto take = RoundTrip(TakeWorkRequest{kStamp, {"train", 100, 32, 3}, kHighest, 7});
  ExpectStamp(take.stamp);
  EXPECT_EQ(take.spec, (WorkSpec{"train", 100, 32, 3}));
  EXPECT_EQ(take.after, kHighest);
  EXPECT_EQ(take.over, 7u);
  const auto taken = RoundTrip(TakeWorkReply{WorkAnswer::kUnit, kHighest, 2, 64, 96});
  EXPECT_EQ(taken.answer, WorkAnswer::kUnit);
  EXPECT_EQ(taken.ticket, kHighest);
  EXPECT_EQ(taken.epoch, 2);
  EXPECT_EQ(taken.begin, 64);
  EXPECT_EQ(taken.end, 96);
  const auto given_up = RoundTrip(GiveUpWorkRequest{kStamp, {5, kHighest}});
  ExpectStamp(given_up.stamp);
  EXPECT_THAT(given_up.tickets, ::testing::ElementsAre(5, kHighest));
  const auto state = RoundTrip(
      WorkState{{"train", 100, 32, 3}, 2, 64, {{1, 0, 32, 4, 9, true}, {2, 32, 64}}, {{3, kHighest, 11, 12, 13}}});
  EXPECT_EQ(state.spec.name, "train");
  EXPECT_EQ(state.epoch, 2);
  EXPECT_EQ(state.next, 64);
  ASSERT_EQ(state.entries.size(), 2u);
  EXPECT_EQ(state.entries[0].epoch, 1);
  EXPECT_EQ(state.entries[0].end, 32);
  EXPECT_EQ(state.entries[0].holder, 4u);
  EXPECT_EQ(state.entries[0].ticket, 9u);
  EXPECT_TRUE(state.entries[0].in_update);
  EXPECT_EQ(state.entries[1].begin, 32);
  EXPECT_FALSE(state.entries[1].in_update);
  ASSERT_EQ(state.holders.size(), 1u);
  EXPECT_EQ(state.holders[0].client, 3u);
  EXPECT_EQ(state.holders[0].incarnation, kHighest);
  EXPECT_EQ(state.holders[0].newest, 11u);
  EXPECT_EQ(state.holders[0].given, 12u);
  EXPECT_EQ(state.holders[0].last, 13u);
  EXPECT_EQ(RoundTrip(InitializeRequest{.work = "state"}).work, "state");
  EXPECT_EQ(RoundTrip(MarkReply{.work = "state"}).work, "state");
  EXPECT_EQ(RoundTrip(PushPullRequest{.work = {4, kHighest}}).work, (WorkRange{4, kHighest}));
}

TEST(MessagesTest, TheDefaultIsTheSameWrittenAndLeftOut) {
  JoinReply reply{.client = 9};
  EXPECT_EQ(Decode("", reply), absl::OkStatus());
  EXPECT_EQ(reply.client, 0u) << "what was there before must not shine through";
}

TEST(MessagesTest, AFieldOfALaterVersionIsSkipped) {
  std::string bytes = Encode(PushPullRequest{kStamp, {1, 2}, PullWhat::kTrainable, 3, 4});
  protozero::pbf_writer writer(bytes);
  writer.add_string(100, "new");
  writer.add_fixed64(101, 1);
  writer.add_fixed32(102, 1);
  writer.add_uint64(103, 1);
  PushPullRequest decoded;
  ASSERT_EQ(Decode(bytes, decoded), absl::OkStatus());
  EXPECT_THAT(decoded.pushed, ::testing::ElementsAre(1, 2));
  EXPECT_EQ(decoded.minibatches, 4u);
}

TEST(MessagesTest, AFieldOfAnotherTypeIsRefused) {
  std::string bytes;
  protozero::pbf_writer(bytes).add_string(1, "not a number");  // for minibatches
  PushPullReply reply;
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(bytes, reply)));
}

template <typename Message>
void DecodeAny(const std::string& bytes) {
  Message message;
  if (Decode(bytes, message).ok()) (void)Encode(message);
}

void DecodeAsEverything(const std::string& bytes) {
  ForEachStoreMessage([&]<typename Message>() { DecodeAny<Message>(bytes); });
}

TEST(MessagesTest, EveryTruncationAndEveryFlippedBitIsSurvived) {
  const std::string bytes = Encode(InitializeRequest{kStamp, 4, SampleModel(), true, {1, 2, 3}, 5, 6});
  int refused = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    DecodeAsEverything(bytes.substr(0, length));
    InitializeRequest message;
    refused += Decode(bytes.substr(0, length), message).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) / 2) << "cutting inside a field must be noticed";
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      DecodeAsEverything(flipped);
    }
  }
}

// A message that ends between two fields is one with fewer fields; any other end is an error.
template <typename Message>
void ExpectOnlyWholeFields(const Message& message) {
  const std::string bytes = Encode(message);
  int fields = 0;
  for (protozero::pbf_reader reader(bytes); reader.next(); reader.skip()) ++fields;
  int taken = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string beginning = bytes.substr(0, length);
    DecodeAsEverything(beginning);
    Message decoded;
    const absl::Status status = Decode(beginning, decoded);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    taken += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(taken, fields);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    DecodeAsEverything(flipped);
  }
}

TEST(MessagesTest, ATruncatedMessageIsNoOther) {
  ExpectOnlyWholeFields(RowsRequest{kStamp, 4, 5, kHighest, -8, 0.5, true});
  ExpectOnlyWholeFields(OpenDirectRequest{kStamp});
  ExpectOnlyWholeFields(OpenDirectReply{"muster-0123", "a ticket", 4000000000u});
  ExpectOnlyWholeFields(EnterDirectRequest{kStamp, "a ticket"});
  ExpectOnlyWholeFields(AwaitTurnRequest{kStamp, 4, kHighest, 600});
  ExpectOnlyWholeFields(AwaitTurnReply{kHighest});
  ExpectOnlyWholeFields(HoldRequest{kStamp, 300});
  ExpectOnlyWholeFields(HoldReply{{5, 0, kHighest}, 600});
  ExpectOnlyWholeFields(MarkRequest{kStamp, 4, 7, {kHighest, 0, 8}, 900, true});
  ExpectOnlyWholeFields(MarkReply{-10, {0, 4000000000u}, {11}, "", {12}});
  ExpectOnlyWholeFields(TakeWorkRequest{kStamp, {"train", 100, 32, 3}, kHighest, 700});
  ExpectOnlyWholeFields(TakeWorkReply{WorkAnswer::kUnit, kHighest, 2, 64, 960});
  ExpectOnlyWholeFields(GiveUpWorkRequest{kStamp, {5, kHighest}});
  ExpectOnlyWholeFields(WorkState{{"train", 100, 32, 3}, 2, 64, {{1, 0, 32, 4, 9, true}}, {{3, kHighest, 11, 12, 13}}});
}

// Empty elements take two bytes each on the wire and some hundred in memory.
TEST(MessagesTest, ListsOfEmptyElementsAreRefusedBeforeTheyFillTheMemory) {
  std::string model;
  for (int i = 0; i < (1 << 16); ++i) model.append("\x12\x00", 2);  // field 2: an empty slice
  std::string bytes;
  protozero::pbf_writer(bytes).add_message(2, model);
  AwaitReadyRequest request;
  const absl::Status status = Decode(bytes, request);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_LT(request.model.slices.capacity() * sizeof(PlacedSlice), 64 * bytes.size());
}

struct Greedy {
  Greedy() { throw std::bad_alloc(); }
  using Fields = FieldList<>;
};
struct GreedyList {
  std::vector<Greedy> elements;
  using Fields = FieldList<Field<1, &GreedyList::elements>>;
};

TEST(MessagesTest, AMessageForWhichThereIsNoMemoryIsAnError) {
  GreedyList message;
  EXPECT_TRUE(absl::IsResourceExhausted(Decode(std::string("\x0a\x00", 2), message)));
}

// Real models are far from the limit: a job with many small variables.
TEST(MessagesTest, ALargeModelIsAccepted) {
  std::vector<VariableSpec> variables;
  for (int i = 0; i < 20000; ++i) variables.push_back({.name = absl::StrCat(i), .shape = {}});
  const AwaitReadyRequest sent{kStamp, ModelOn(variables, {})};
  AwaitReadyRequest received;
  EXPECT_EQ(Decode(Encode(sent), received), absl::OkStatus());
  EXPECT_EQ(received.model.slices.size(), 20000u);
}

TEST(MessagesTest, GarbageIsSurvived) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    DecodeAsEverything(bytes);
  }
}

TEST(MessagesTest, MethodsHaveNames) {
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kPushPull)), "push_pull");
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kCommitCheckpoint)), "commit_checkpoint");
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kPushRows)), "push_rows");
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kOpenDirect)), "open_direct");
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kMark)), "mark");
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kAwaitTurn)), "await_turn");
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kTakeWork)), "take_work");
  EXPECT_EQ(StoreMethodName(static_cast<uint16_t>(StoreMethod::kGiveUpWork)), "give_up_work");
  EXPECT_EQ(StoreMethodName(0), "unknown");
  EXPECT_EQ(StoreMethodName(kStoreMethods), "unknown");
  EXPECT_EQ(StoreMethodName(65535), "unknown");
}

}  // namespace
}  // namespace muster::messages_test
