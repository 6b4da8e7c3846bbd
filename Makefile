# `make gate` and `make test` do everything: each gets what is missing, builds, and runs.
# `make` itself ends 2 whenever a step fails and names the step's own exit code ("Error 1"); where the exact code
# matters, call target/release/sidegate.

# The change that `make gate` judges; BASE may be empty. More flags for sidegate: ARGS.
BASE ?= examples/lua/base.yaml
HEAD ?= examples/lua/head.yaml
ARGS ?=
# The Envoy that examples, tests and benches use.
ENVOY ?= 1.40.0

SIDEGATE := $(or $(CARGO_TARGET_DIR),target)/release/sidegate

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
# rustup puts its tools there; a shell that was open before does not know yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)
# A snapshot that differs is a failure, never a new file.
export INSTA_UPDATE ?= no

WITH_ENVOY = export SIDEGATE_TEST_ENVOY="$${SIDEGATE_TEST_ENVOY:-$$($(SIDEGATE) proxy path envoy@$(ENVOY))}";

.DEFAULT_GOAL := help
.PHONY: help setup build envoy gate test contract image lint lint-workflows deny bench-noise bench-load bench-errors \
	bench-cost bench-explain creep baselines clean

help: ## what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: ## check the machine, get system packages where that is allowed
	@scripts/setup

build: setup ## target/release/sidegate
	cargo build --release --locked

envoy: build ## the proxy binary, downloaded once
	@test -n "$${SIDEGATE_TEST_ENVOY:-}" || $(SIDEGATE) proxy install envoy@$(ENVOY)

gate: envoy ## judge a change: make gate BASE=old.yaml HEAD=new.yaml ARGS="--profile quick"
	$(SIDEGATE) gate $(if $(BASE),--base '$(BASE)') --head '$(HEAD)' $(ARGS)

test: envoy ## every test, those with a real Envoy too
	$(WITH_ENVOY) cargo test --release --locked

contract: setup ## tests of the pull-request comment, judged by GitHub's description of its API, and its event payloads; needs npm
	tests/contract/run
	tests/contract/events

lint: setup ## format and lints
	@scripts/setup --lint
	cargo fmt --check
	cargo clippy --release --locked --all-targets -- -D warnings

lint-workflows: ## workflows, examples of workflows, action.yml, Dockerfile
	@scripts/lint-workflows

image: build ## the image of the action, built without a daemon and tried on sample changes; as root
	@scripts/image

deny: ## licences, advisories, sources of dependencies; needs cargo-deny
	@cargo deny --version >/dev/null 2>&1 || { echo 'cargo-deny is missing; install it with: cargo install --locked cargo-deny' >&2; exit 4; }
	cargo deny --locked check

creep: envoy ## five accepted steps of +0.9 % instructions against a stored baseline; needs valgrind
	$(WITH_ENVOY) cargo test --release --locked --test it creep -- --ignored --nocapture

baselines: envoy ## record the baselines of the examples anew
	$(WITH_ENVOY) for pair in lua/base:examples__lua__head basic/envoy:examples__basic__envoy; do \
	  $(SIDEGATE) baseline record --envoy "$$SIDEGATE_TEST_ENVOY" --config "examples/$${pair%:*}.yaml" --target "$${pair#*:}"; \
	done

bench-noise: envoy ## spread of identical configs, interleaved against one after the other
	$(WITH_ENVOY) cargo bench --locked --bench noise

bench-load: envoy ## how much the load generator carries
	$(WITH_ENVOY) cargo bench --locked --bench load

bench-cost: envoy ## how exact instruction counts are, and how long they take; LONG=1 for windows of 1 000 requests too
	$(WITH_ENVOY) cargo bench --locked --bench cost -- $(if $(LONG),--long)

bench-errors: setup ## false-positive rate and power, by simulation
	cargo bench --locked --bench errors

bench-explain: envoy ## prices of ten filters by ablation against adding each alone
	$(WITH_ENVOY) cargo bench --locked --bench explain

clean: ## all that was built and measured
	rm -rf target sidegate-out
