# Commands for people. `make` alone lists them.

GAME ?= paco-sako
RUN  ?= runs/$(subst :,-,$(GAME))
# Duration of `make soak` and `make chaos`, and longest duration of each reader in `make fuzz`, in seconds.
SECONDS ?= 600
# Inputs of each reader in `make fuzz`.
INPUTS ?= 1000000
# More arguments for `minuet up` and `minuet bench`, e.g. make up ARGS="--actors 2"
ARGS ?=

# Features of the programs that `make up` builds: otlp (spans for an OpenTelemetry collector), s3 (stores on s3://).
FEATURES ?=
# Tests and images have all features.
ALL_FEATURES = otlp,s3

# The example is empty. With it, cargo gives the libraries of others the features that `make test` gives them, so that
# both share them. `deploy` has tests only, which need more of object_store; `python` is no program.
CARGO_BUILD = cargo build --release --locked --workspace --exclude bench --exclude deploy --exclude python --bins --example features --features '$(FEATURES)'
# The same with the native module of the Python package.
CARGO_BUILD_LIBRARY = $(subst --exclude python --bins,--lib --bins,$(CARGO_BUILD))
# Number of tests of a program at a time: two for each core, because most tests wait for processes most of the time.
export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
CARGO_TEST = cargo test --release --locked --workspace --exclude python --features $(ALL_FEATURES)
MINUET = target/release/minuet

.DEFAULT_GOAL := help
.PHONY: help up play pictures pages plots wheel release test test-docker test-kubernetes test-programs bench soak chaos fuzz lint format build setup check-tools clean images compose-up compose-down

help: ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

up: build ## train on this machine: make up GAME=paco-sako RUN=runs/my-run; Ctrl-C stops, make up again continues
	@exec $(MINUET) up --game $(GAME) --run $(RUN) $(ARGS)

play: build ## play against the shipped networks in the browser: make play ARGS="--run runs/my-run" adds a run's
	@exec $(MINUET) studio --open $(ARGS)

test: setup test-programs ## run every test, the whole loop included (no network needed after the set-up)
	@python3 scripts/run_tests.py --command 'python3 -m unittest discover -q -s scripts/tests' \
		--command '$(CARGO_TEST) --no-fail-fast' --command 'python3 scripts/test_python.py'

wheel: FEATURES = $(ALL_FEATURES)
wheel: setup ## build the wheel, which is the whole product, into target/wheels
	@$(CARGO_BUILD_LIBRARY)
	@python3 scripts/wheel.py

test-docker: FEATURES = $(ALL_FEATURES)
test-docker: build ## test the compose stack and a swarm: scaling, kills, network cuts, alerts, updates, a game in Python (ten to fifteen minutes)
	@# make test leaves the native module of the Python package, whose build takes minutes.
	@test -f target/release/lib_minuet.so || $(CARGO_BUILD_LIBRARY)
	@python3 scripts/run_tests.py --command 'python3 -m unittest -v deploy/tests/test_compose.py'

test-kubernetes: FEATURES = $(ALL_FEATURES)
test-kubernetes: build ## test the manifests on a Kubernetes of three nodes in containers, built once (root; half an hour)
	@test -f target/release/lib_minuet.so || $(CARGO_BUILD_LIBRARY)
	@python3 scripts/run_tests.py --command 'python3 -m unittest -v deploy/tests/test_kubernetes.py'

bench: build ## run the benchmarks, one JSON object per line
	@$(subst --exclude bench,,$(CARGO_BUILD))
	@for what in accuracy games generator replay search selfplay tasks training; do $(MINUET) bench $$what --json $(ARGS) || exit 1; done
	@python=$$(python3 scripts/python_env.py onnxruntime); \
		for what in inference playouts; do $(MINUET) bench $$what --json $${python:+--python "$$python"} $(ARGS) || exit 1; done

soak: setup ## run 200 misbehaving clients for SECONDS against the inference server
	MINUET_SOAK_SECONDS=$(SECONDS) $(CARGO_TEST) --test requests two_hundred -- --nocapture

fuzz: setup ## give every reader of foreign bytes INPUTS random inputs, for at most SECONDS each (about 80 readers)
	MINUET_FUZZ_INPUTS=$(INPUTS) MINUET_FUZZ_SECONDS=$(SECONDS) $(CARGO_TEST) fuzz_ -- --nocapture --test-threads=1

chaos: setup ## inject random faults into a small run for SECONDS; no acknowledged game may be lost
	MINUET_CHAOS_SECONDS=$(SECONDS) $(CARGO_TEST) --test program chaos:: -- --nocapture

pictures: build ## take the pictures of the README and of the studio from real runs (needs chromium and chromium-driver; ten minutes)
	@rm -rf target/picture-run
	@python=$$(python3 scripts/python_env.py picture) && \
		$$python scripts/terminal_picture.py --seconds 60 --columns 150 --output docs/pictures/make-up.svg -- \
			$(MINUET) up --game connect-four --run target/picture-run && \
		$$python scripts/studio_pictures.py --program $(MINUET) --output docs/pictures

plots: ## draw the pictures of the book: simulated systems, strength
	@python=$$(python3 scripts/python_env.py simulate) && $$python scripts/simulated_pictures.py && $$python scripts/strength_picture.py

pages: build ## write the generated pages of docs/reference and the alerts of deploy/ anew
	MINUET_WRITE_PAGES=1 $(CARGO_TEST) --test program -- --exact pages::configuration_reference_is_the_template pages::command_reference_is_the_help
	MINUET_WRITE_PAGES=1 $(CARGO_TEST) -p launcher --lib -- --exact alarms::tests::rules_and_page_of_a_cluster_are_those_of_the_list

release: ## build a release from this commit: wheel, archive, bills of materials, digests (root, debootstrap; fifteen minutes)
	@sh scripts/release.sh

lint: setup ## check formatting, doc comments, error messages, dependencies, and clippy with warnings denied
	cargo fmt --all --check
	@python3 scripts/check_comments.py
	@python3 scripts/check_errors.py
	@python3 scripts/check_dependencies.py
	@python3 scripts/count_lines.py | tail -n 1
	cargo clippy --release --locked --workspace --all-targets --features $(ALL_FEATURES) -- -D warnings

format: ## format the code
	cargo fmt --all

build: setup ## build all programs into target/release; FEATURES=otlp,s3 adds optional parts
	@$(CARGO_BUILD)

setup: check-tools ## fetch the two native libraries once into the user's cache
	@python3 scripts/fetch_libraries.py

# Programs of others that tests use, fetched once into the user's cache. A test whose program cannot be fetched is skipped,
# and `make test` says so at its end.
test-programs:
	@for name in $(basename $(notdir $(filter-out %/peer.txt %/pgx.txt %/picture.txt %/torch.txt,$(wildcard scripts/python/*.txt)))); do python3 scripts/python_env.py $$name > /dev/null || true; done
	@python3 scripts/perf_analyzer.py > /dev/null || true
	@for name in kubectl promtool; do python3 scripts/debian_program.py $$name > /dev/null || true; done

check-tools:
	@sh scripts/check_tools.sh

# The compose plugin if there is one, otherwise docker-compose.
COMPOSE = $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)
# All profiles of the file: `down` stops only containers of named profiles.
PROFILES = analysis command object-store observe rating studio
MINUET_REVISION = $(shell git rev-parse --short HEAD 2>/dev/null)

images: ## build the role images (CPU), named minuet-ROLE:local, and minuet-python:local for games of one's own
	@MINUET_REVISION=$(MINUET_REVISION) $(COMPOSE) -f deploy/docker-compose.yml --profile command build
	@docker build --quiet --file deploy/docker/Dockerfile --target python --build-arg REVISION=$(MINUET_REVISION) --tag minuet-python:local .

compose-up: images ## train in containers on this host
	@$(COMPOSE) -f deploy/docker-compose.yml up --detach
	@echo 'training has started; follow it with: $(COMPOSE) -f deploy/docker-compose.yml logs --follow learner; settings: deploy/compose/run.toml'

compose-down: ## stop the containers and keep their volumes
	@$(COMPOSE) -f deploy/docker-compose.yml $(addprefix --profile ,$(PROFILES)) down

clean: ## remove what was built (runs and fetched libraries stay)
	cargo clean
