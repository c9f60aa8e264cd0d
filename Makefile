# Two commands do all the set-up: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
SNAPSHOT ?= indexer/sample/sample.snapshot.jsonl.gz
# A git clone to index and serve instead of a snapshot.
REPO ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint types check lock stop bench clean help

help:  ## List the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(INSTALLED) .env  ## Install, load the sample (or SNAPSHOT=file, REPO=clone) and serve it
	$(BIN)/python manage.py demo $(if $(REPO),--repo "$(REPO)",--snapshot "$(SNAPSHOT)") --port $(PORT)

test: $(INSTALLED)  ## Install and run the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

lint: $(INSTALLED)  ## Style, import contracts and templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/djlint search/templates --lint --profile django --quiet

types: $(INSTALLED)  ## Static types
	$(BIN)/mypy

check: lint types test  ## Everything that must pass

bench: $(INSTALLED) .env  ## Latency of each stage on the loaded index
	$(BIN)/python manage.py bench

stop: $(INSTALLED)  ## Stop the embedded PostgreSQL, if a killed process left it running
	$(BIN)/python -c "from pathlib import Path; from ragsite import embedded; embedded.stop(Path('var/postgres').resolve())"

lock:  ## Resolve requirements*.in again
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock" requirements.in -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock" requirements-dev.in -o requirements-dev.txt

clean: stop  ## Remove the virtual environment and the demo's data
	rm -rf $(VENV) var

.env:
	cp .env.example .env

$(INSTALLED): requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	touch $@
