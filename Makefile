# The few commands a person types. `make` alone lists them.

GAME ?= paco-sako
RUN  ?= runs/$(GAME)
# How long `make soak` and `make chaos` go on.
SECONDS ?= 600
# More arguments for `minuet up` and `minuet bench`, e.g. make up ARGS="--actors 2"
ARGS ?=

# An example makes cargo choose the features that `make test` has, so that the two share every artefact; this one is empty.
CARGO_BUILD = cargo build --release --locked --workspace --exclude bench --bins --example features
MINUET = target/release/minuet

.DEFAULT_GOAL := help
.PHONY: help up test test-docker test-clients bench soak chaos lint format build setup check-tools clean images compose-up compose-down

help: ## what there is to type
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

up: build ## train on this machine: make up GAME=paco-sako RUN=runs/my-run; Ctrl-C stops, make up again goes on
	@exec $(MINUET) up --game $(GAME) --run $(RUN) $(ARGS)

test: setup test-clients ## every test, the whole loop included (needs no network after the set-up)
	@python3 -m unittest discover -q -s scripts/tests
	cargo test --release --locked --workspace --no-fail-fast

test-docker: build ## the compose stack in containers: scaled, killed, cut off (six minutes)
	@python3 -m unittest -v deploy/tests/test_compose.py

bench: build ## the benchmarks, one JSON object a line
	@cargo build --release --locked -p bench
	@for what in games search inference playouts replay selfplay training; do $(MINUET) bench $$what --json $(ARGS) || exit 1; done

soak: setup ## 200 clients that misbehave, for SECONDS: the inference server stays healthy
	MINUET_SOAK_SECONDS=$(SECONDS) cargo test --release --locked --workspace --test doors two_hundred -- --nocapture

chaos: setup ## random faults for SECONDS while a small run goes on: nothing acknowledged is lost
	MINUET_CHAOS_SECONDS=$(SECONDS) cargo test --release --locked --workspace --test chaos -- --nocapture

lint: setup ## formatting, clippy with warnings denied, openings of doc comments
	cargo fmt --all --check
	@python3 scripts/check_comments.py
	cargo clippy --release --locked --workspace --all-targets -- -D warnings

format: ## format the code
	cargo fmt --all

build: setup ## all binaries, in target/release
	@$(CARGO_BUILD)

setup: check-tools ## the two native libraries, fetched once into the user's cache
	@python3 scripts/fetch_libraries.py

# Other people's programs that tests drive ours with, fetched once into the user's cache; a test whose program cannot be had
# says that it was skipped.
test-clients:
	@for name in $(basename $(notdir $(filter-out %/torch.txt,$(wildcard scripts/python/*.txt)))); do python3 scripts/python_env.py $$name > /dev/null || true; done
	@python3 scripts/perf_analyzer.py > /dev/null || true

check-tools:
	@sh scripts/check_tools.sh

# The compose plugin where there is one, docker-compose where there is not.
COMPOSE = $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)
# All of the file's: what belongs to a profile that is not named is not stopped.
PROFILES = command object-store observe rating stores
MINUET_REVISION = $(shell git rev-parse --short HEAD 2>/dev/null)

images: ## the role images (CPU), named minuet-ROLE:local
	@MINUET_REVISION=$(MINUET_REVISION) $(COMPOSE) -f deploy/docker-compose.yml --profile command build

compose-up: images ## train in containers on this host
	@$(COMPOSE) -f deploy/docker-compose.yml up --detach
	@echo 'training; follow it: $(COMPOSE) -f deploy/docker-compose.yml logs --follow learner; settings: deploy/compose/run.toml'

compose-down: ## stop the containers; all state stays in volumes
	@$(COMPOSE) -f deploy/docker-compose.yml $(addprefix --profile ,$(PROFILES)) down

clean: ## remove what was built (runs and fetched libraries stay)
	cargo clean
