#include "muster/store/service/decoded_request.h"

namespace muster {

absl::Status DecodedRequest::Decode(const IncomingRequest& request) {
  switch (static_cast<StoreMethod>(request.method)) {
#define MUSTER_DECODE(number, method, name, Request, Reply) \
  case StoreMethod::method:                                 \
    return DecodeAs<Request>(request.control);
    MUSTER_STORE_METHODS(MUSTER_DECODE)
#undef MUSTER_DECODE
  }
  return absl::OkStatus();
}

std::unique_ptr<DecodedRequest> DecodedRequests::Take() {
  if (spare_.empty()) return std::make_unique<DecodedRequest>();
  std::unique_ptr<DecodedRequest> used = std::move(spare_.back());
  spare_.pop_back();
  return used;
}

void DecodedRequests::Reuse(std::unique_ptr<BulkTarget> used) {
  // As many as pushes mostly come in at once.
  constexpr size_t kMostSpare = 16;
  std::unique_ptr<DecodedRequest> bulk(static_cast<DecodedRequest*>(used.release()));
  bulk->Drop();
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(bulk));
}

}  // namespace muster
