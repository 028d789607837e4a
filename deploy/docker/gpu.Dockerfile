# The two roles that use a GPU, with the CUDA libraries that only they need:
# `docker build -f deploy/docker/gpu.Dockerfile --target inference-server-gpu .` (or `learner-gpu`).
#
# The driver's libraries come from the host (NVIDIA's container runtime, driver 580 or newer for CUDA 13). All other CUDA
# libraries come from the wheels that PyTorch and ONNX Runtime publish, pinned by version and SHA-256.
ARG BUILD_IMAGE=rust:1.95-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1
ARG WHEELS_IMAGE=python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254
ARG RUNTIME_IMAGE=debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716

FROM ${BUILD_IMAGE} AS compiled
WORKDIR /src
COPY . .
RUN sh deploy/docker/compile.sh

# ONNX Runtime with the CUDA provider (CUDA 13, cuDNN 9).
FROM ${WHEELS_IMAGE} AS ort-cuda
COPY deploy/docker/cuda-inference.txt /requirements.txt
RUN pip install --no-cache-dir --no-compile --no-deps --require-hashes --only-binary :all: --target /wheels --requirement /requirements.txt \
    && mkdir -p /out/ort/lib /out/cuda/lib \
    && cp /wheels/onnxruntime/capi/libonnxruntime.so.* /out/ort/lib/libonnxruntime.so \
    && cp /wheels/onnxruntime/capi/libonnxruntime_providers_*.so /out/ort/lib/ \
    && find /wheels/nvidia -name '*.so*' -type f -exec cp -t /out/cuda/lib {} +

# libtorch with CUDA, in the version of the CPU image, and its NVIDIA wheels.
FROM ${WHEELS_IMAGE} AS torch-cuda
COPY deploy/docker/cuda-learner.txt /requirements.txt
RUN pip install --no-cache-dir --no-compile --no-deps --require-hashes --only-binary :all: --target /wheels --requirement /requirements.txt \
    && mkdir -p /out/torch/lib /out/cuda/lib \
    && cp /wheels/torch/lib/*.so* /out/torch/lib/ \
    && find /wheels/nvidia -name '*.so*' -type f -exec cp -t /out/cuda/lib {} +

FROM ${RUNTIME_IMAGE} AS base
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Minuet" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.revision="${REVISION}"
RUN install -d -m 0750 -o 65532 -g 65532 \
    /var/lib/minuet /var/lib/minuet/replay /var/lib/minuet/checkpoints /var/lib/minuet/learner /var/lib/minuet/spool
COPY --from=compiled /dist/ssl/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=compiled /dist/sbom/gpu.cdx.json /usr/share/minuet/sbom.cdx.json
ENV MINUET_CONFIG=/etc/minuet/run.toml \
    MINUET_LOG_FORMAT=json \
    MALLOC_ARENA_MAX=2 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65532:65532
WORKDIR /var/lib/minuet
EXPOSE 9100 50050
STOPSIGNAL SIGTERM

FROM base AS inference-server-gpu
COPY --from=ort-cuda /out/ort /opt/minuet/ort
COPY --from=ort-cuda /out/cuda /opt/minuet/cuda
COPY --from=compiled /dist/bin/minuet-inference-server /opt/minuet/bin/
ENV ORT_DYLIB_PATH=/opt/minuet/ort/lib/libonnxruntime.so \
    LD_LIBRARY_PATH=/opt/minuet/cuda/lib
EXPOSE 50051
HEALTHCHECK --interval=10s --timeout=5s --start-period=600s CMD ["/opt/minuet/bin/minuet-inference-server", "--probe", "127.0.0.1:50050"]
ENTRYPOINT ["/opt/minuet/bin/minuet-inference-server"]

# The learner verifies exports on the CPU, with ONNX Runtime for CPUs.
FROM base AS learner-gpu
COPY --from=torch-cuda /out/torch /opt/minuet/torch
COPY --from=torch-cuda /out/cuda /opt/minuet/cuda
COPY --from=compiled /dist/ort /opt/minuet/ort
COPY --from=compiled /dist/bin/minuet-learner /opt/minuet/bin/
ENV ORT_DYLIB_PATH=/opt/minuet/ort/lib/libonnxruntime.so \
    LD_LIBRARY_PATH=/opt/minuet/torch/lib:/opt/minuet/cuda/lib \
    OMP_WAIT_POLICY=PASSIVE \
    GOMP_SPINCOUNT=0
HEALTHCHECK --interval=10s --timeout=30s --start-period=600s CMD ["/opt/minuet/bin/minuet-learner", "--probe", "127.0.0.1:50050"]
ENTRYPOINT ["/opt/minuet/bin/minuet-learner"]
