# Every target does all its own set-up: `make demo` works on a fresh machine with Python 3.11+, and again at once.
# ARGS="..." is handed on to the command, PYTHON=/path/to/python picks another Python.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test soak parts lint bench lock image try-image site clean

# Evaluated when a recipe runs, not before: `make help` and `make clean` set nothing up.
ENVIRONMENT = venv=$$(bash .ci/environment)

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## a co-located day of 100 nodes in the embedded cluster; ARGS=--console shows it in a browser
	@$(ENVIRONMENT); "$$venv/bin/koordpolicy" demo $(ARGS)

test: ## the test suite; ARGS="-k nearest" is handed on to pytest
	@$(ENVIRONMENT); "$$venv/bin/python" -m pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder -m "not soak" $(ARGS)

soak: ## the long stories of kills, load and whole walks that `make test` leaves out
	@$(ENVIRONMENT); "$$venv/bin/python" -m pytest -m soak $(ARGS)

parts: ## what the tests need of real programs, once; ARGS=--list says what is there
	@$(ENVIRONMENT); "$$venv/bin/python" -m tests.parts $(ARGS)

lint: ## lint, format and types
	@$(ENVIRONMENT); \
	echo "ruff check"; "$$venv/bin/ruff" check .; \
	echo "ruff format"; "$$venv/bin/ruff" format --check .; \
	echo "mypy"; "$$venv/bin/mypy"

bench: ## the benchmarks: a table, and JSON
	@$(ENVIRONMENT); "$$venv/bin/python" -m tests.benchmarks $(ARGS)

lock: ## requirements.lock from pyproject.toml; UPGRADE=1 takes newer versions
	@venv=$$(bash .ci/environment --lock); \
	UV_CUSTOM_COMPILE_COMMAND="make lock" "$$venv/bin/uv" pip compile --quiet --python "$$venv/bin/python" \
		--universal --fork-strategy fewest --python-version 3.11 --all-extras --generate-hashes \
		--no-emit-index-url $(if $(UPGRADE),--upgrade) --output-file requirements.lock pyproject.toml

image: ## the image of all processes, build/*.oci.tar
	@$(ENVIRONMENT); PYTHON="$$venv/bin/python" deploy/image/build $(ARGS)

try-image: ## the image built twice and compared, and its processes in containerd; needs root
	@$(ENVIRONMENT); PYTHON="$$venv/bin/python" deploy/image/build --output build/again.oci.tar; \
	PYTHON="$$venv/bin/python" deploy/image/build --output build/image.oci.tar; \
	cmp build/again.oci.tar build/image.oci.tar; \
	KOORDPOLICY_IMAGE=build/image.oci.tar "$$venv/bin/python" -m pytest tests/integration/deploy/test_image.py $(ARGS)

site: ## the web pages of the manual, build/site
	@$(ENVIRONMENT); "$$venv/bin/python" deploy/site/build $(ARGS); echo build/site/index.html

clean: ## what the other targets left, the environment included
	@bash .ci/environment --clean
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find koordpolicy tests -name __pycache__ -type d -prune -exec rm -rf {} +
