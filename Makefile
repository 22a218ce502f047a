# Two commands: `make demo` and `make test`. Both set up .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo web test test-newest check soak benchmark docs clean

setup: $(STAMP)

# The model is downloaded once (up to 1.2 GB). Where it cannot be had, a smaller one serves. MODEL=small is for a slow line.
MODEL ?= base
demo: setup
	@for model in $(MODEL) small tiny; do \
		if $(BIN)/fluents weights get $$model; then exec $(BIN)/fluents track examples/tomato_soup.md --model $$model --table; fi; \
		echo "The model $$model cannot be had; the demo goes on with a smaller one." >&2; \
	done; exit 1

# The web application on this machine. ARGUMENTS="--model small" is passed on.
web: setup
	$(BIN)/fluents web $(ARGUMENTS)

# Files of tests are shared out among the cores, up to four: some tests load a model.
PARALLEL := --numprocesses=auto --maxprocesses=4 --dist=loadfile

test: check
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term --durations=10

# The fast tests on the newest Python of this machine, beside the one that .venv has. Without the extras, whose tests skip.
test-newest:
	@newest=$$(for minor in 14 13 12; do \
	  for python in python3.$$minor "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.$$minor.*/bin/python; do \
	    $$python -c 'import venv' 2> /dev/null && echo $$python; \
	  done; \
	done | head -1); \
	if [ -z "$$newest" ]; then echo "no Python newer than 3.11 on this machine"; exit 0; fi; \
	$$newest -m venv .venv-newest && .venv-newest/bin/python -m pip install --quiet --upgrade 'pip>=25.1' && \
	.venv-newest/bin/python -m pip install --quiet --editable '.[data]' --group dev && \
	env -u CI OMP_WAIT_POLICY=passive .venv-newest/bin/python -m pytest -q $(PARALLEL) -m 'not slow'

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What takes minutes to show. The web application: 50 visitors for a minute, 1,000 jobs, 2,000 requests made from its schema.
# Annotation: 50 annotators for a minute and kill -9 of the server 20 times, on SQLite and PostgreSQL.
# Batch runs: kill -9 at 20 random moments, resumed each time. Each ends by itself; the first that fails ends all.
soak: setup
	for file in benchmarks/soak_*.py; do $(BIN)/python $$file || exit 1; done

benchmark: setup
	for file in benchmarks/*.py; do $(BIN)/python $$file; done

# Regenerates what the docs show of the program itself; a test fails when it is out of date.
docs: setup
	$(BIN)/python docs/generate.py

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fluents needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[data,web]' --group dev
	touch $(STAMP)

clean:
	rm -rf $(VENV) .venv-newest .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
