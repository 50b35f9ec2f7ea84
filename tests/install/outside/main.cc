// What another project might write: a checksum and a cluster, from installed headers and libraries.
#include <cstdio>
#include <string>

#include "muster/base/crc32c.h"
#include "muster/cluster/cluster_spec.h"

int main() {
  const std::string digits = "123456789";
  auto cluster = muster::ClusterSpec::FromJson(R"({"ps": ["a:1"], "worker": ["b:2", "c:3"]})");
  if (!cluster.ok()) return 1;
  std::printf("crc32c=%08x workers=%d\n", muster::Crc32c(muster::AsBytes(digits.data(), digits.size())),
              cluster->num_tasks("worker"));
  return 0;
}
