// How to get TensorBoard, for the messages of all that look for it.
#pragma once

namespace muster {

inline constexpr char kInstallTensorBoard[] = "pip install tensorboard, or ./dev setup in a checkout of muster";

}  // namespace muster
