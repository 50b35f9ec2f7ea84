// A Collective over TCP, for ranks on any hosts: a ring, in which each rank requests pieces from the one before it as
// soon as they are ready there (docs/collectives.md, "Ring"). Share s of a sum starts with the contribution of rank s +
// 1 and goes round until rank s adds its own; then the sums go round. So each byte crosses each link at most twice,
// whatever the number of ranks, and all ranks get the same bits.
//
// Lives on its own event loop, which runs only during an operation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/collective/collective.h"
#include "muster/collective/collective_call.h"
#include "muster/collective/ring/rendezvous.h"
#include "muster/collective/ring/ring_messages.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster {

class RingCollective final : public Collective, private RequestHandler {
 public:
  // For at least two ranks. This one listens at its address from here on. Errors are those of Listen.
  static absl::StatusOr<std::unique_ptr<RingCollective>> Create(const GroupOptions& options);
  ~RingCollective() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string kind() const override { return "ring"; }

  [[nodiscard]] absl::Status AllReduce(const Segments& in, const MutableSegments& out, DType dtype, Reduction reduction,
                                       absl::Time deadline) override;
  [[nodiscard]] absl::Status ReduceScatter(const Segments& in, const MutableSegments& out, DType dtype,
                                           Reduction reduction, absl::Time deadline) override;
  [[nodiscard]] absl::Status AllGather(const Segments& in, const MutableSegments& out, size_t element_bytes,
                                       absl::Time deadline) override;
  [[nodiscard]] absl::Status Broadcast(const MutableSegments& data, int root, absl::Time deadline) override;
  [[nodiscard]] absl::Status Barrier(absl::Time deadline) override;
  void Leave() override;

 private:
  // An operation as its pieces go round, `stages` times each.
  struct Flow {
    CollectiveCall call;
    size_t stages = 0;
    size_t pieces = 1;
    bool receives = true;     // from the rank before
    bool serves = true;       // the next one
    bool first_ready = true;  // what goes out in stage 0 is available from the beginning
    size_t hop = 1;           // what arrives in stage s goes out in stage s + hop
    std::function<Segments(size_t stage, size_t piece)> source;
    std::function<MutableSegments(size_t stage, size_t piece)> target;
    std::function<void(size_t stage, size_t piece)> received;
  };
  // The next rank's request for a piece that isn't ready.
  struct Waiting {
    PieceRequest request;
    Responder responder;
  };

  explicit RingCollective(const GroupOptions& options);
  [[nodiscard]] absl::Status Reduce(const CollectiveCall& call, const Segments& in, const MutableSegments& out,
                                    bool gather, absl::Time deadline);
  [[nodiscard]] absl::Status Run(Flow& flow, absl::Time deadline);
  bool HasAll() const { return !flow_->receives || received_ == flow_->stages * flow_->pieces; }
  bool HasServedAll() const { return !flow_->serves || served_ == flow_->stages * flow_->pieces; }
  // The neighbour that the present operation waits for.
  int WaitsFor() const { return HasAll() ? after() : before(); }
  // Runs the loop like RunUntil, and reports a long wait; sets `told` if it has.
  bool AwaitEnd(absl::FunctionRef<bool()> over, absl::Time deadline, bool& told);
  // Returns an error if the operation can't go on because a neighbour that it needs has gone.
  absl::Status WhyStuck() const;
  void AskForMore();
  void Serve(const PieceRequest& request, Responder responder);
  void ServeWaiting();
  void Watch();
  // Ends the present operation, and all later ones, with `why`.
  void Fail(absl::Status why);
  // Tells both neighbours why, and disconnects from them.
  void End(const absl::Status& why);

  void OnConnect(ConnectionId, const std::string&) override {}
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override;
  void OnDisconnect(ConnectionId connection) override;

  int before() const { return (rank_ + size_ - 1) % size_; }
  int after() const { return (rank_ + 1) % size_; }

  const std::vector<std::string> names_;
  const std::string address_;
  const std::string address_before_;
  const int rank_;
  const int size_;
  TcpEventLoop loop_;
  TcpTransport transport_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Channel> channel_;        // to the rank before
  std::optional<ConnectionId> watched_by_;  // the next rank's connection
  std::optional<Responder> watcher_;        // answers its kWatch
  std::vector<Waiting> waiting_;
  uint64_t number_ = 0;  // counts operations begun
  absl::Status failure_;
  std::optional<absl::Status> ended_;  // what the neighbours are told; a kWatch may come later
  // Why a neighbour has gone. An operation that needs no more of it still succeeds.
  absl::Status before_gone_;
  absl::Status after_gone_;

  // State of the present operation.
  Flow* flow_ = nullptr;
  std::vector<std::vector<bool>> ready_;  // by stage and piece: may go out
  size_t asked_ = 0;
  size_t received_ = 0;
  size_t served_ = 0;
  std::shared_ptr<int> in_use_;     // one reference for each reply whose bytes aren't all with the kernel
  std::vector<std::byte> partial_;  // partial sums on their way, and room for arriving ones
};

}  // namespace muster
