// What a session may ask of the process that it runs in (TensorFlow's ConfigProto). A plain value.
#pragma once

namespace muster {

struct SessionConfig {};

}  // namespace muster
