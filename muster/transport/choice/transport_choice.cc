#include "muster/transport/choice/transport_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "muster/transport/tcp/tcp_transport.h"

namespace muster {
namespace {

struct Registered {
  TransportChoice choice;
  std::string_view name;
  std::unique_ptr<Transport> (*make)(TcpEventLoop& loop, JobToken token);
};

template <bool shared_memory>
std::unique_ptr<Transport> MakeTcp(TcpEventLoop& loop, JobToken token) {
  return std::make_unique<TcpTransport>(loop, std::move(token),
                                        TcpOptions{.shared_memory = {.enabled = shared_memory}});
}

constexpr Registered kTransports[] = {
    {TransportChoice::kAuto, "auto", &MakeTcp<true>},
    {TransportChoice::kTcp, "tcp", &MakeTcp<false>},
};

}  // namespace

std::optional<TransportChoice> ParseTransportChoice(std::string_view name) {
  const auto* const found = std::ranges::find(kTransports, name, &Registered::name);
  return found == std::end(kTransports) ? std::nullopt : std::optional(found->choice);
}

std::unique_ptr<Transport> MakeTransport(TransportChoice choice, TcpEventLoop& loop, JobToken token) {
  return std::ranges::find(kTransports, choice, &Registered::choice)->make(loop, std::move(token));
}

}  // namespace muster
