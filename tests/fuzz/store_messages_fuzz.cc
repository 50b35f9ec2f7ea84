// What a process of the job may send to a ps. Any bytes as every message: decoding fails or gives a message that is the
// same when written and read again. Any bytes as the control part of a request of any method, with bulk, to a ps that
// trains (the stamp {0, 1, n} is its chief's; lane 7 of its queue has sent 1 request): the ps answers, and it can still
// save its model.
//
// Input: a byte for the method, a byte for the number of bulk bytes, the control part. The bulk consists of the 64-bit
// numbers 0, 1, 2, …, so that they may be rows.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/check.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/log.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/direct/arena_listener.h"
#include "muster/store/service/store_service.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"

namespace muster {
namespace {

template <typename Message>
void FuzzMessage(const std::string& bytes) {
  Message message;
  if (!Decode(bytes, message).ok()) return;
  const std::string written = Encode(message);
  Message again;
  MUSTER_CHECK(Decode(written, again).ok());
  MUSTER_CHECK(Encode(again) == written);
}

// Counts answers.
class Sink final : public Responder::Sink {
 public:
  explicit Sink(int& answers) : answers_(answers) {}
  void Send(uint64_t, absl::Status, absl::string_view, absl::Span<const ByteSpan>,
            std::shared_ptr<const void>) override {
    ++answers_;
  }

 private:
  int& answers_;
};

class FuzzedStore {
 public:
  // `port` must outlive it.
  explicit FuzzedStore(ArenaListener* port)
      : service_(loop_, {.workers = {"worker:0", "worker:1"},
                         .files = &files_,
                         .background = [this](absl::AnyInvocable<void()> task) { loop_.Post(std::move(task)); },
                         .port = port}) {
    MUSTER_CHECK(files_.CreateDirectory("model").ok());
    Request(StoreMethod::kJoin, Encode(JoinRequest{"worker:0", 1, true, "here"}), 0);
    const std::vector<VariableSpec> variables = {{.name = "w", .shape = {3}},
                                                 {.name = "mean", .shape = {2}, .kind = VariableKind::kBuffer},
                                                 {.name = "table", .shape = {9, 2}, .kind = VariableKind::kRows}};
    const StoreModel model = ModelOfPs(variables, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}),
                                       RuleSpec{.kind = RuleKind::kAdam}, 0);
    Request(StoreMethod::kInitialize,
            Encode(InitializeRequest{.stamp = {0, 1, 1}, .chief_epoch = 1, .model = model, .generation = 1}), 20);
    MUSTER_CHECK(service_.MakeView().arena != nullptr);
    // Lane 7 of a queue with one element of 8 bytes and room for one more.
    Request(StoreMethod::kOpenQueue, Encode(OpenQueueRequest{"worker:0", 7, "q", 2, {{DType::kInt64, {1}}}}), 0);
    Request(StoreMethod::kEnqueue, Encode(QueueRequest{.lane = 7, .sequence = 1}), 8);
    MUSTER_CHECK(service_.MakeView().queues.at(0).elements == 1);
  }

  void Request(StoreMethod method, const std::string& control, size_t bulk_bytes) {
    IncomingRequest request{.connection = ConnectionId{1},
                            .method = static_cast<uint16_t>(method),
                            .control = control,
                            .bulk_bytes = bulk_bytes};
    std::unique_ptr<BulkTarget> bulk;
    if (bulk_bytes > 0) {
      auto target = service_.PrepareBulk(request);
      if (!target.ok()) return;
      MUSTER_CHECK(TotalBytes((*target)->segments()) == bulk_bytes);
      size_t at = 0;
      for (const MutableByteSpan segment : (*target)->segments())
        for (std::byte& byte : segment) byte = at++ % 8 == 0 ? std::byte(at / 8) : std::byte(0);
      bulk = *std::move(target);
    }
    service_.Handle(request, std::move(bulk), Responder(std::make_unique<Sink>(answers_)));
  }

  void ReadEverything() {
    (void)StatusJson(service_.MakeView());
    if (Arena* arena = service_.MakeView().arena; arena != nullptr && arena->layout().total_bytes() < 1 << 24) {
      const PartSnapshot snapshot = TakeSnapshot(*arena);
      (void)WritePart(files_, "part", arena->model(), ViewOf(arena->model(), snapshot));
    }
    loop_.RunUntil([] { return false; }, loop_.Now() + absl::Hours(1));
  }

  int answers() const { return answers_; }

 private:
  SimulatedWorld world_;
  EventLoop& loop_ = world_.loop();
  MemoryFileSystem files_;
  int answers_ = 0;
  StoreService service_;
};

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  muster::SetUpLog("", "off");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto method = static_cast<muster::StoreMethod>(data[0] % (muster::kStoreMethods + 1));
  const std::string control(reinterpret_cast<const char*>(data) + 2, size - 2);
  muster::ForEachStoreMessage([&]<typename Message>() { muster::FuzzMessage<Message>(control); });
  // A client that attaches to the arena needs a thread in the ps: one serves all inputs.
  static const auto port = muster::ArenaListener::Open().value();
  muster::FuzzedStore store(port.get());
  const int before = store.answers();
  store.Request(method, control, data[1]);
  store.ReadEverything();
  // At most one answer; a request that waits for the model gets its answer here, because there is one.
  MUSTER_CHECK(store.answers() - before <= 1);
  return 0;
}
