# Three images: `cpu`; `serve`, the same as a service; and `cuda13` for NVIDIA GPUs with a driver of CUDA 13.
# docs/how_to/install.md and docs/how_to/serve.md say how to run them.
#
#     docker build --target cpu -t neardup .
#     docker build --target serve -t neardup:serve .
#     docker build --target cuda13 -t neardup:cuda13 .

FROM python:3.13-slim-trixie AS wheel
# Kernels are compiled when the wheel is built, for which Numba needs a C and a C++ compiler.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN NEARDUP_ALL_KERNELS=1 pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim-trixie AS base
# Kernels that did not come compiled, such as those for GPUs, are kept there, if it is a folder of the one who runs.
ENV NEARDUP_CACHE_DIR=/cache PYTHONUNBUFFERED=1
RUN useradd --uid 1000 --create-home neardup && install -d -o neardup -g neardup -m 700 /cache && install -d -o neardup /data
WORKDIR /data
ENTRYPOINT ["neardup"]
CMD ["--help"]

FROM base AS cuda13
# The packages bring CUDA's libraries, and numba-cuda, as this wheel has no compiled GPU kernels; the driver comes from the machine, by the NVIDIA Container Toolkit.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    find /wheels -name '*.whl' -exec pip install --no-cache-dir '{}[cuda13-clone,report,warc]' ';'
USER 1000

FROM base AS cpu
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    find /wheels -name '*.whl' -exec pip install --no-cache-dir '{}[report,serve,warc]' ';'
USER 1000
# Fails if the wheel lacks kernels and they could not be kept.
RUN neardup doctor --compile

FROM cpu AS serve
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
CMD ["index", "serve", "/data/index", "--host", "0.0.0.0"]
