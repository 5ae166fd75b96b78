# The steps of README.md in an image, for CPUs: docker build -t macro-placement . ; docs/how-to/kubernetes.md uses it.
FROM python:3.11-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends g++ make git wget && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/macro-placement
COPY . .
RUN make install PYTHON=python3.11
# KubeRay starts jobs through Ray's dashboard, which needs additional packages, and checks the pods' health with wget.
RUN .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-kuberay.lock
ENV PATH=/opt/macro-placement/.venv/bin:$PATH
CMD ["macro-placement", "--help"]
