# The web app and the workers: docker build -t foretell . && docker run -p 127.0.0.1:8400:8400 foretell
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
# The sandbox of notebooks. Docker must allow it to make namespaces; `foretell doctor` says whether it does.
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
COPY requirements/locked.txt /wheels/locked.txt
RUN python -m pip install --no-cache-dir --constraint /wheels/locked.txt \
  "$(ls /wheels/foretell-*.whl)[cluster,inspect,llm,mcp,notebook,plots,stats,web]"
RUN useradd --create-home foretell && install --directory --owner foretell /data
USER foretell
ENV FORETELL_HOME=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8400
# The login page answers without a token.
HEALTHCHECK --interval=30s --start-period=30s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8400/login', timeout=5)"]
# Its log has the link with the token, unless FORETELL_TOKEN sets one.
CMD ["foretell", "serve", "--host", "0.0.0.0"]
