// Tensors come out of a queue as they went in.
#include "muster/torch_bridge/facade/shared_queue.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/torch_bridge/facade/training.h"

namespace muster::shared_queue_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

const QueueOptions kOptions = {.capacity = 8,
                               .components = {QueueTensor(torch::kFloat32, {2, 3}), QueueTensor(torch::kInt64)}};

template <typename Call>
absl::Status StatusOf(Call call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const Error& error) {
    return error.status();
  }
}

TEST(SharedQueueTest, TensorsComeOutAsTheyWentIn) {
  const auto server = Server::CreateLocal();
  SharedQueue queue = server->OpenQueue("input", kOptions);
  std::vector<torch::Tensor> images;
  for (int64_t i = 0; i < 5; ++i) {
    images.push_back(torch::rand({3, 2}).t());  // not contiguous
    queue.Enqueue({images.back(), torch::tensor(i)});
  }
  EXPECT_EQ(queue.Size(), 5);
  const auto one = queue.Dequeue();
  EXPECT_TRUE(torch::equal(one[0], images[0]));
  EXPECT_EQ(one[1].item<int64_t>(), 0);
  const auto two = queue.DequeueMany(2);
  EXPECT_TRUE(torch::equal(two[0], torch::stack({images[1], images[2]})));
  EXPECT_TRUE(torch::equal(two[1], torch::tensor({int64_t{1}, int64_t{2}})));
  queue.Close();
  EXPECT_TRUE(queue.IsClosed());
  const auto rest = queue.DequeueUpTo(10);
  EXPECT_EQ(rest[1].sizes(), torch::IntArrayRef({2}));
  EXPECT_TRUE(torch::equal(rest[0], torch::stack({images[3], images[4]})));
  EXPECT_TRUE(absl::IsOutOfRange(StatusOf([&] { queue.Dequeue(); })));
  EXPECT_TRUE(absl::IsCancelled(StatusOf([&] { queue.Enqueue({images[0], torch::tensor(int64_t{9})}); })));
}

TEST(SharedQueueTest, WhatDoesNotFitIsNamed) {
  const auto server = Server::CreateLocal();
  SharedQueue queue = server->OpenQueue("input", kOptions);
  const absl::Status shape = StatusOf([&] { queue.Enqueue({torch::rand({3, 2}), torch::tensor(int64_t{1})}); });
  EXPECT_TRUE(absl::IsInvalidArgument(shape));
  EXPECT_THAT(std::string(shape.message()), AllOf(HasSubstr("component 0"), HasSubstr("[2,3]"), HasSubstr("[3,2]")));
  const absl::Status type = StatusOf([&] { queue.Enqueue({torch::rand({2, 3}), torch::tensor(1.0F)}); });
  EXPECT_THAT(std::string(type.message()),
              AllOf(HasSubstr("component 1"), HasSubstr("int64[]"), HasSubstr("given: float32[]")));
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf([&] { queue.Enqueue({torch::rand({2, 3})}); })));
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf([&] { queue.DequeueMany(0); })));
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(
      [&] { SharedQueue other = server->OpenQueue("input", {.capacity = 9, .components = kOptions.components}); })));
}

TEST(SharedQueueTest, ARunnerFillsItUntilItsFunctionThrowsOutOfRange) {
  const auto server = Server::CreateLocal();
  int64_t sum = 0;
  int64_t batches = 0;
  // [program]
  SharedQueue queue = server->OpenQueue("numbers", {.capacity = 4, .components = {QueueTensor(torch::kInt64)}});
  auto next_number = [&, next = int64_t{0}]() mutable {
    if (next == 10) throw Error(absl::OutOfRangeError("used up"));
    queue.Enqueue({torch::tensor(next++)});
  };
  Coordinator coordinator;
  const auto runner = MakeQueueRunner(queue, {next_number});
  ThrowIfError(runner->Start(coordinator));
  try {
    for (;; ++batches) sum += queue.DequeueUpTo(3)[0].sum().item<int64_t>();
  } catch (const Error& error) {
    if (!absl::IsOutOfRange(error.status())) throw;  // closed and used up
  }
  coordinator.RequestStop();
  ThrowIfError(coordinator.Join());
  // [/program]
  EXPECT_EQ(sum, 45);
  EXPECT_EQ(batches, 4);
}

}  // namespace
}  // namespace muster::shared_queue_test
