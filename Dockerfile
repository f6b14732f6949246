# The translation service, or a training, in a container. docs/deploying.md says
# how to build and to run it.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS base
# For GPUs: server,words,gpu.
ARG EXTRAS=server,words
WORKDIR /opt/official-transformer
COPY setup.py pyproject.toml constraints.txt README.md LICENSE ./
COPY data_prep data_prep
COPY flags flags
COPY official_transformer official_transformer
RUN pip install --no-cache-dir --constraint=constraints.txt ".[${EXTRAS}]" \
  && useradd --create-home --uid=10001 translator
ENV PYTHONUNBUFFERED=1 PYTHONUTF8=1
USER 10001
WORKDIR /work

# All commands: transformer_main, which trains unless --mode says otherwise.
FROM base AS training
ENTRYPOINT ["transformer_main"]

# Without --target, this one is built.
FROM base AS service
ARG MODEL=models/en_de
COPY --chown=10001 ${MODEL} /model
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s CMD \
  ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://localhost:8000/ready', timeout=4)"]
ENTRYPOINT ["translation_server", "--host=0.0.0.0"]
CMD ["--model_dir=/model"]
