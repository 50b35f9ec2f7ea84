# The command `muster` in an image: what a pod of a stand-alone ps runs, and what images of training programs copy the
# command from (docs/containers.md). Build it from a checkout: docker build -t muster .
#
# The digest is that of the tag's image for all architectures; both change together.
FROM debian:12.12-slim@sha256:d5d3f9c23164ea16f31852f95bd5959aad1c5e854332fe00f7b3a20fcc9f635c AS build
WORKDIR /muster
# Packages come first, so that a change of the code doesn't install them anew.
COPY tools/setup.sh tools/packages.txt tools/
RUN tools/setup.sh --no-torch --for build
COPY . .
RUN CI=true tools/build.py command muster_command && strip build/command/bin/muster

FROM debian:12.12-slim@sha256:d5d3f9c23164ea16f31852f95bd5959aad1c5e854332fe00f7b3a20fcc9f635c
# The command needs no library but glibc, which the base has.
COPY --from=build /muster/build/command/bin/muster /usr/local/bin/muster
RUN useradd --uid 1000 --home-dir /muster --create-home muster
# A number, by which Kubernetes sees that it isn't root.
USER 1000:1000
WORKDIR /muster
ENTRYPOINT ["muster"]
CMD ["--help"]
