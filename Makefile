# The few commands a person types. `make` alone lists them.

GAME ?= paco-sako
RUN  ?= runs/$(GAME)
# More arguments for `minuet up` and `minuet bench`, e.g. make up ARGS="--actors 2"
ARGS ?=

CARGO_BUILD = cargo build --release --locked --bins
MINUET = target/release/minuet

.DEFAULT_GOAL := help
.PHONY: help up test bench lint format build setup check-tools clean

help: ## what there is to type
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

up: build ## train on this machine: make up GAME=paco-sako RUN=runs/my-run; Ctrl-C stops, make up again goes on
	@exec $(MINUET) up --game $(GAME) --run $(RUN) $(ARGS)

test: setup ## every test, the whole loop included (needs no network after the set-up)
	@python3 -m unittest discover -q -s scripts/tests
	cargo test --release --locked --workspace

bench: build ## the benchmarks, one JSON object a line
	@for what in games search inference replay selfplay; do $(MINUET) bench $$what --json $(ARGS) || exit 1; done

lint: setup ## formatting and clippy, warnings denied
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings

format: ## format the code
	cargo fmt --all

build: setup ## all binaries, in target/release
	@$(CARGO_BUILD)

setup: check-tools ## the two native libraries, fetched once into the user's cache
	@python3 scripts/fetch_libraries.py

check-tools:
	@sh scripts/check_tools.sh

clean: ## remove what was built (runs and fetched libraries stay)
	cargo clean
