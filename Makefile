# Everything a newcomer needs: `make run` and `make test` install what is missing, build, and do it.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
ARGIOPE := build/release/bin/argiope

.DEFAULT_GOAL := help
.PHONY: help run test bench install clean build asan tsan debug fuzz packages-build packages-test packages-bench

help: ## this list
	@echo 'Argiope: make TARGET'
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'make run URL=https://example.org/ crawls that; JOBS=n and PREFIX=/path are understood.'

packages-build packages-test packages-bench: packages-%:
	@tools/install-packages.sh $*

# $(call build,PRESET,TARGETS,CMAKE OPTIONS): configure when needed, build, and say little.
define build
	@test -f build/$(1)/build.ninja && test -z "$(3)" || cmake --preset $(1) $(3) >build-$(1).log 2>&1 || { cat build-$(1).log; exit 1; }
	@rm -f build-$(1).log
	@cmake --build build/$(1) -j $(JOBS) --target $(2)
endef

build: packages-build ## the command, in build/release/bin/argiope
	$(call build,release,argiope,-DARGIOPE_TESTS=OFF)

run: build ## crawl a synthetic web, or URL=…
	@tools/run-demo.sh $(ARGIOPE) $(URL)

test: packages-build packages-test ## build everything and run all tests
	$(call build,release,all,-DARGIOPE_TESTS=ON)
	@ctest --preset release -j $(JOBS)

bench: packages-build packages-test packages-bench ## run every benchmark beside its peers
	$(call build,release,all benches,-DARGIOPE_TESTS=ON)
	@bench/run-all.sh build/release/bin

asan tsan debug: %: packages-build packages-test
	$(call build,$@,all,)
	@ctest --preset $@ -j $(JOBS)

fuzz: packages-build packages-test ## each fuzz target for FUZZ_SECONDS (20)
	$(call build,fuzz,all,-DARGIOPE_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),20))
	@ctest --preset fuzz

install: build ## into PREFIX (/usr/local)
	@cmake --install build/release --prefix $(DESTDIR)$(PREFIX)

clean: ## remove build/
	rm -rf build
