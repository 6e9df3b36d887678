# SPDX-License-Identifier: Apache-2.0
# The two commands are `make demo` and `make test`; `make help` lists the rest. CMake does the work, by presets.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo demo-amd test test-aarch64 build bench check mutants install setup setup-demo setup-test package clean

help:  ## list these targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

# Tests take longer to build than everything else; the demo does without. What it builds `make test` does not build again.
demo: setup-demo  ## build the programs, show eight recorded H200 ranks, diagnose a hang and a straggler; leaves demo-out/
	@tools/build release $(JOBS) lockstep lockstep-nccl lockstep-nccl-host lockstep-sim-job
	@tools/demo

demo-amd: setup-test  ## the same of two ranks with ROCr and HIP on software GPUs
	@tools/build release $(JOBS) lockstep lockstep-nccl lockstep-cuda lockstep-hsa lockstep-software-gpu lockstep-rccl-job
	@tools/demo_amd

test: setup-test build  ## build, then run every test
	@tools/run_tests release

test-aarch64:  ## cross-compile, and run the unit tests of aarch64 under QEMU
	@tools/test_aarch64 $(JOBS) all

build:  ## build the tools and libraries into build/release/{bin,lib}
	@tools/build release $(JOBS)

bench:  ## build with Google Benchmark, measure, and update bench/results.md
	@tools/setup --dev
	@tools/build bench $(JOBS)
	@bench/run
	@bench/storage

check: build  ## format, layers, exports, docs, words, tidy: the fast checks that a change must pass
	@tools/setup --dev
	@tools/check

mutants: setup-test  ## what a room's tests notice: ROOM=src/analysis/bandwidth [SECONDS=900] [COUNT=25] [SEED=1]
	@tools/mutants "$(ROOM)" --seconds $(or $(SECONDS),900) --count $(or $(COUNT),25) --seed $(or $(SEED),1)

install: setup  ## build and install into PREFIX (default /usr/local), without tests
	@tools/build install $(JOBS)
	@cmake --install build/install --prefix "$(PREFIX)"

# CROSS is empty, or -aarch64: then by Debian's cross compiler, into dist-aarch64/.
CROSS := $(addprefix -,$(filter-out $(shell uname -m),$(ARCH)))
package:  ## make dist/: a tarball, a Python wheel and .deb packages for any Linux with glibc 2.28; ARCH=aarch64 for Grace
	@tools/setup --package
	@$(if $(CROSS),tools/setup -$(CROSS))
	@tools/build install$(CROSS) $(JOBS) portable
	@tools/package build/install$(CROSS) dist$(CROSS)

setup:  ## install the Debian packages that are missing
	@tools/setup

setup-demo:
	@tools/setup --demo

setup-test:
	@tools/setup --test

clean:  ## remove build/ and demo-out/
	rm -rf build demo-out
