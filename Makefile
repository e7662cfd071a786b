# Everything a newcomer needs: `make run` and `make test` install what is missing, build, and do it.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
ARGIOPE := build/release/bin/argiope

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build run dashboard docs test check bench install wheel npm-package deb release package-test debug asan tsan fuzz clean test-programs sanitized-programs run-sanitized packages-build packages-dashboard packages-test packages-docs packages-bench packages-package

help: ## this list
	@echo 'Argiope: make TARGET'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'Variables: URL=https://… (run), DIR=/path (release), PREFIX=/path and DESTDIR= (install), FUZZ_SECONDS=20 (fuzz), JOBS=processors.'

packages-build packages-dashboard packages-test packages-docs packages-bench packages-package: packages-%:
	@tools/install-packages.sh $*

# $(call configure,PRESET,CMAKE OPTIONS): prints only what went wrong. ARGIOPE_CMAKE_OPTIONS are options of the caller's.
configure = @output=$$(cmake --preset $(1) $(2) $(ARGIOPE_CMAKE_OPTIONS) 2>&1) || { echo "$$output"; exit 1; }
# $(call compile,PRESET,TARGETS)
compile = @cmake --build build/$(1) -j $(JOBS) --target $(2)
# $(call check,PRESET OF TESTS,PRESET OF THE BUILD,CTEST OPTIONS): one more at a time than there are processors, because many wait.
check = @tools/run-tests.py $(1) --build $(or $(2),$(1)) --jobs $$(($(JOBS) + 1)) --record "$(ARGIOPE_RECORD)" -- $(3)

# Without tests when first configured, because their libraries may not be there yet; else as it was.
build/release/build.ninja: | packages-build
	$(call configure,release,-DARGIOPE_TESTS=OFF)

build: packages-build build/release/build.ninja ## the command: build/release/bin/argiope
	@tools/install-dashboard.sh --if-possible
	$(call compile,release,argiope)

dashboard: packages-dashboard build ## the command with the dashboard of `argiope serve`, for which it installs npm

run: build ## crawl a synthetic web on this machine, or URL=…
	@tools/run-demo.sh $(ARGIOPE) $(URL)

docs: packages-docs ## the documentation as a site that opens from disk: build/docs/site/index.html
	@tools/docs_site.py
	@echo build/docs/site/index.html

test: packages-build packages-test packages-docs test-programs ## build everything and run every test
	$(call check,release)

# All that `make test` runs.
test-programs:
	@tools/install-dashboard.sh --if-possible && tools/install-dashboard.sh --if-possible tests
	$(call configure,release,-DARGIOPE_TESTS=ON)
	$(call compile,release,all)

check: ## everything there is: all tests, under each sanitizer too, each fuzz target for a minute, hundreds of kills; for hours
	@tools/check.sh

bench: packages-build packages-test packages-bench ## run every benchmark beside its peers
	$(call configure,release,-DARGIOPE_TESTS=ON)
	$(call compile,release,argiope walk_oracle benches)
	@bench/run-all.sh build/release/bin

install: build/release/build.ninja ## the command and the library, into PREFIX (/usr/local)
	$(call compile,release,argiope argiope_help_files argiope_libraries)
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

deb: packages-package dashboard ## a package for Debian 12: build/release/argiope_…_….deb
	$(call configure,release)
	$(call compile,release,argiope argiope_help_files argiope_package_files)
	@cd build/release && rm -f argiope_*.deb && cpack -G DEB >cpack.log 2>&1 || { cat cpack.log; exit 1; }
	@ls build/release/argiope_*.deb

wheel: packages-package ## the Python client, to be installed without the net: build/clients/argiope-….whl
	@tools/client-packages.sh build/clients python && ls build/clients/*.whl

npm-package: ## the JavaScript client alike: build/clients/argiope-….tgz
	@tools/client-packages.sh build/clients js && ls build/clients/*.tgz

release: deb ## DIR=…: the package, the wheel, the npm package, the sources and their checksums, in a folder
	@tools/make-release.sh build/release "$(DIR)"

package-test: deb ## installs the package on a bare Debian 12, asks every shell; needs root and a mirror
	@ARGIOPE_ALL_SHELLS=1 tests/packaging/help_files_test.sh $(ARGIOPE)
	@tests/packaging/deb_test.sh $$(ls build/release/argiope_*.deb)
	@tests/packaging/container_test.sh

debug: packages-build packages-test ## all tests, built for the debugger
	$(call configure,debug)
	$(call compile,debug,all)
	$(call check,debug)

asan: packages-build packages-test ## all tests and corpora of fuzz targets under the address and undefined-behaviour sanitizers
	$(call configure,asan,-DARGIOPE_FUZZ_SECONDS=0)
	$(call compile,asan,all fuzz_targets)
	$(call check,asan)

# The same of some modules, MODULES='async store', by the names of their tests; without what runs the command, and without the
# tests of very many tasks and those in shuffled orders, which take minutes under a sanitizer: `make asan` has them.
sanitized-programs:
	$(call configure,asan,-DARGIOPE_FUZZ_SECONDS=0)
	$(call compile,asan,$(MODULES:%=tests_of_%))
run-sanitized:
	$(call check,asan,,-L '^($(subst $(eval ) ,|,$(strip $(MODULES))))$$' -E '^async[.](.*ManyTasks|shuffled_orders)')

tsan: packages-build packages-test ## all tests under the thread sanitizer
	$(call configure,tsan)
	$(call compile,tsan,all)
	$(call check,tsan)

fuzz: packages-build packages-test ## each fuzz target for FUZZ_SECONDS, built as for `make asan`
	$(call configure,asan,-DARGIOPE_FUZZ_SECONDS=$(FUZZ_SECONDS))
	$(call compile,asan,fuzz_targets)
	$(call check,fuzz,asan)

clean: ## remove build/
	rm -rf build
