// How TensorBoard is started, and how to get it, for all that look for it.
#pragma once

#include <string>
#include <vector>

namespace muster {

inline constexpr char kInstallTensorBoard[] = "pip install tensorboard, or ./dev setup in a checkout of muster";

// Returns the command that shows `folder` at "HOST:PORT".
inline std::vector<std::string> TensorBoardCommand(const std::string& folder, const std::string& address) {
  const size_t colon = address.rfind(':');
  return {"tensorboard", "--logdir", folder, "--host", address.substr(0, colon), "--port", address.substr(colon + 1)};
}

}  // namespace muster
