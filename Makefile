# A thin front: every target is one or two commands that also work by hand.
#
#   make build   wp-codebox, wp-codebox-platform, wp-codebox-launch and wp_codebox.so in target/release/
#   make wasi    wp-codebox-wasi, the runner of WASI tools, in target/release/; compiles a WebAssembly runtime
#   make demo    installs and builds what it needs, in the profile of the unit tests, and tells one story from a goal to
#                an applied patch; AGENT='…' CHECK='…' AGENT_SUCCESS_CODES=0,1 swap in another program
#   make check   what a change needs before it is committed: make lint, then the unit tests
#   make test    every behaviour once; make test SUITES='rust cli' only some
#   make test-all  also the long suites: matrices, kill -9, load, fuzzing, packaging
#   make cluster-demo   a message server, three nodes, 50 tasks, one node killed
#   make agent-tasks   three repair tasks for the built-in agent loop; scripted unless AGENT_TASKS_MODEL is set
#   make lint    formatting, clippy, dependency rule, schemas, stub, PHP
#   make deny    licences, bans and sources of the dependencies; needs cargo-deny
#   make bench   measures and writes raw samples to tests/bench/results/
#   make dist    the WordPress plugin: dist/wp-codebox/, dist/codebox.zip and dist/codebox-browser.zip; npm builds browser/
#   make deb     the Debian packages in dist/: the programs, and the extension for PHP 8.2
#   make env     shell exports for the built programs: eval "$(make env)"
#   make clean   removes target/ and dist/; downloads and the home directory stay
#
# CARGO_TARGET_DIR may be shared by several checkouts, but cargo judges by time alone whether a
# program is fresh, and can serve another checkout's program after a switch to older sources.
# There, `make clean` first, or give each checkout a target of its own.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: build-packages build wasi check demo test test-all cluster-demo agent-tasks lint deny bench dist deb env clean provision packages install

# Debian's PHP 8.2, also where another PHP comes first on the PATH.
export PHP ?= /usr/bin/php8.2
export PHP_CONFIG ?= /usr/bin/php-config8.2

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
RELEASE := $(TARGET)/release
PROFILE := release
CRATES := wp-codebox-ext wp-codebox-cli wp-codebox-platform
BUILT = $(TARGET)/$(PROFILE:dev=debug)
TRIPLE := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
TRIPLE_ENV := CARGO_TARGET_$(shell echo '$(TRIPLE)' | tr 'a-z-' 'A-Z_')_RUSTFLAGS

packages:
	@tests/provision packages

build-packages:
	@tests/provision packages build

provision: packages
	@tests/provision files

# The launcher is linked statically: it runs where no library of the host is in sight, and
# starts without a dynamic loader. --target keeps that flag away from build scripts and macros.
# The wrapper, which CI sets, would lint here a second time.
build: build-packages
	env -u RUSTC_WORKSPACE_WRAPPER cargo build --profile $(PROFILE) $(CRATES:%=-p %)
	env -u RUSTC_WORKSPACE_WRAPPER $(TRIPLE_ENV)='-C target-feature=+crt-static' cargo build --profile $(PROFILE) -p wp-codebox-launcher --target $(TRIPLE)
	@install -m 0755 $(TARGET)/$(TRIPLE)/$(notdir $(BUILT))/wp-codebox-launch $(BUILT)/wp-codebox-launch
	@install -m 0755 $(BUILT)/libwp_codebox.so $(BUILT)/wp_codebox.so

# Linked statically like the launcher: it runs in guests, and inside gVisor with a root of its own.
wasi:
	cd ext/tools/wasi && $(TRIPLE_ENV)='-C target-feature=+crt-static' CARGO_TARGET_DIR=$(TARGET)/wasi cargo build --release --locked --target $(TRIPLE)
	@install -D -m 0755 $(TARGET)/wasi/$(TRIPLE)/release/wp-codebox-wasi $(RELEASE)/wp-codebox-wasi

# The runtime files of browser sandboxes contain the SQLite integration that provisioning downloads; its WP-CLI makes
# the template of the translations.
dist: provision
	@cargo xtask dist

deb: provision build
	@cargo xtask dist deb

install: provision build dist
	@tests/provision install

demo: PROFILE := dev
demo: CRATES := wp-codebox-ext wp-codebox-cli
demo: export CODEBOX_BUILD = $(BUILT)
demo: build
	@tests/provision files build
	@cargo xtask dist plugin
	@tests/provision install
	@tests/demo/story

test: install
	@tests/run $(SUITES)

test-all: install
	@tests/run --all

cluster-demo: install
	@eval "$$(tests/env)"; /usr/bin/python3 tests/cluster/many_hosts

agent-tasks: install
	@eval "$$(tests/env)"; /usr/bin/python3 -m pytest tests/agent-tasks $(if $(TASKS),-k '$(TASKS)')

lint: packages
	@cargo xtask check

deny:
	@cargo deny --version >/dev/null 2>&1 || { echo 'cargo-deny is missing; run: cargo install cargo-deny --locked' >&2; exit 1; }
	cargo deny check licenses bans sources
	cargo deny --manifest-path ext/tools/wasi/Cargo.toml check --config deny.toml licenses bans sources

# Side by side, because many unit tests wait for the end of a time limit.
check: packages
	@log=$$(mktemp); cargo xtask check >"$$log" 2>&1 & lint=$$!; \
	tests=0; cargo test --quiet --lib --bins || tests=$$?; \
	rules=0; wait $$lint || rules=$$?; cat "$$log"; rm -f "$$log"; exit $$((tests || rules))

bench: install
	@eval "$$(tests/env)"; tests/bench/run

# Only the exports go to stdout, so that a shell can evaluate it.
env:
	@$(MAKE) --no-print-directory install >&2
	@tests/env command-line

clean:
	cargo clean
	rm -rf dist
