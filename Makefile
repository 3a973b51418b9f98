# One target per thing a developer does. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

CARGO ?= cargo
PATHS ?= /usr/share /usr/lib
RAM ?= 32MiB
BUILT := $(or $(CARGO_TARGET_DIR),target)
REPORT ?= $(BUILT)/dedup-report.html
PYTHON ?= python3
PYENV := $(abspath $(BUILT))/python
TARGET ?= page
SECONDS ?= 60
ARGS ?=
JOBS ?=
# Many tests wait for a disk or a child process.
TEST_THREADS = $(shell echo $$((2 * $$(nproc))))
# One build serves all tests: those in which a barrier of durability can be switched off, and all others.
MUTANTS := --workspace --features nandex-trial/mutants
FLAGS := --locked $(if $(JOBS),-j $(JOBS))

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort | column -t -s "$$(printf '\t')" \
	  || sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1: \2/p' $(MAKEFILE_LIST)

.PHONY: run
run: compiler ## Find the duplicate chunks of PATHS with an index held to RAM
	@mkdir -p $(dir $(REPORT))
	@# Exit code 4: some files are not for this user to read, and the command says which.
	$(CARGO) run $(FLAGS) --profile first -p nandex-cli -- dedup $(PATHS) --ram $(RAM) --report $(abspath $(REPORT)) || test $$? -eq 4

.PHONY: test
test: fmt tidy lint docs unit doctest mutants canary python ## Everything that must pass before a change is merged

.PHONY: fmt
fmt: tools ## Check the formatting
	$(CARGO) fmt --all --check

.PHONY: lint
lint: tools compiler ## Clippy, warnings refused
	$(CARGO) clippy $(FLAGS) --workspace --all-targets -- -D warnings

.PHONY: unit
unit: compiler ## Unit and integration tests, the tidy test and the commands of the docs among them
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$(TEST_THREADS)} $(CARGO) test $(FLAGS) $(MUTANTS) --tests --no-fail-fast

.PHONY: doctest
doctest: compiler ## The examples in docstrings and in README.md
	$(CARGO) test $(FLAGS) $(MUTANTS) --doc

.PHONY: docs
docs: compiler ## The API documentation, warnings refused
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(FLAGS) --workspace --no-deps

.PHONY: tidy
tidy: compiler ## Only the tidy test, with its list of the longest functions
	$(CARGO) test $(FLAGS) -p nandex-xtask -- --nocapture

.PHONY: bench
bench: compiler ## Measure nandex and the device's own limits (ARGS="...")
	$(CARGO) run $(FLAGS) --release -p nandex-bench -- $(ARGS)

.PHONY: ram
VERB ?=
ram: compiler ## Measure what the process of each verb takes next to the RAM that is stated (VERB=wan)
	NANDEX_RAM_ONLY="$(VERB)" NANDEX_RAM_JSON=$(abspath $(BUILT))/ram.json \
	  $(CARGO) test $(FLAGS) --release -p nandex-cli --test ram -- --ignored --nocapture

.PHONY: speed
speed: compiler ## Measure how fast the simulated flash is (ARGS="...")
	$(CARGO) run $(FLAGS) --release -p nandex-bench --bin nandex-bench-sim -- $(ARGS)

.PHONY: peers
ROCKSDB_ENV = $(if $(wildcard /usr/include/rocksdb/c.h),ROCKSDB_INCLUDE_DIR=/usr/include ROCKSDB_LIB_DIR=$(dir $(firstword $(wildcard /usr/lib/*/librocksdb.so /usr/lib/librocksdb.so))))
PEERS ?= --all --workload lookup-hit --entries 20M --ram 256MiB --threads 32 --depth 1 --max-seconds 300 --cgroup
peers: libraries ## Measure other engines on the same keys, memory and disk (ARGS="...")
	cd crates/lab/peers && $(ROCKSDB_ENV) $(CARGO) run --locked --release -- $(or $(ARGS),$(PEERS))

.PHONY: filters
FILTERS ?= --all --workload insert --keys 100M --ram 32MiB --batch 1024 --runs 1 --max-seconds 60 --cgroup=512MiB
filters: compiler ## Measure filters, ours and others', on the same keys, memory and disk (ARGS="...")
	cd crates/lab/peers && $(CARGO) run --locked --release --no-default-features --bin nandex-peers-filters -- $(or $(ARGS),$(FILTERS))

.PHONY: counts
COUNTERS = --counter counting-mb --counter counting-mdb --counter counting-mdb-l --counter rocksdb
COUNTS ?= $(COUNTERS) --workload count-add --keys 64M --ram 256MiB --batch 1024 --latency off --runs 3 --cgroup
counts: libraries ## Count keys in the counting table and in other engines, on the same keys, memory and disk (ARGS="...")
	cd crates/lab/peers && $(ROCKSDB_ENV) $(CARGO) run --locked --release --no-default-features --features rocksdb,lmdb --bin nandex-peers-counters -- $(or $(ARGS),$(COUNTS))

.PHONY: crash
SWEEP ?= full
crash: compiler ## The long sweeps: a cut or a failure at every device operation, and kill -9
	NANDEX_SWEEP=$(SWEEP) $(CARGO) test $(FLAGS) --release -p nandex-trial --test suite --test trials -- crash faults kill cuts

.PHONY: probe
probe: compiler ## Find the geometry of a thousand simulated devices, with and without noise
	NANDEX_GEOMETRIES=1000 $(CARGO) test $(FLAGS) --release -p nandex-sim --test probe -- --nocapture

.PHONY: mutants
mutants: compiler ## Switch off one barrier of durability at a time; some check must fail each time
	$(CARGO) test $(FLAGS) $(MUTANTS) --test mutants -- --nocapture

.PHONY: trial
TRIAL_LIMITS = $(if $(SEED),--seed $(SEED)) $(if $(START),--start $(START)) $(if $(HOURS),--hours $(HOURS)) \
  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(CUTS),--cuts $(CUTS))
trial: compiler ## Structures on failing simulated flash, by seed (SEED=7, or HOURS=8, MINUTES=5, CUTS=1000000)
	$(CARGO) run $(FLAGS) --release -p nandex-trial -- $(TRIAL_LIMITS)

.PHONY: canary
canary: compiler ## Plant bugs of durability; trials must notice each
	$(CARGO) test $(FLAGS) $(MUTANTS) --test canary

.PHONY: fuzz
fuzz: compiler ## Fuzz one decoder (TARGET=page SECONDS=60)
	$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install cargo-fuzz --locked
	cd fuzz && RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $(TARGET) -- -max_total_time=$(SECONDS)

.PHONY: kvapi
kvapi: compiler ## Build OpenMPDK's sample programs with libkvapi and run them (KVSSD=FOLDER of a checkout)
	@command -v g++ >/dev/null || { apt-get update -qq && apt-get install -y -qq g++; }
	crates/apps/kvapi/samples.sh $(or $(KVSSD),$(error give KVSSD=FOLDER, a checkout of OpenMPDK/KVSSD))

.PHONY: wan
RATE ?= 10mbit
LINK ?= namespaces
wan: compiler ## Measure the WAN proxy over a slow link, in network namespaces (RATE=10mbit LINK=loopback ARGS="...")
	@RATE=$(RATE) LINK=$(LINK) crates/apps/wanproxy/wan.sh $(ARGS)

.PHONY: python
python: environment ## The Python package: its wheel of the profile of tests, pytest, its types and its examples
	crates/python/check.sh $(PYENV) $(FLAGS)

.PHONY: ray
KILLS ?= 100
ray: environment ## The Python package on Ray and Dask, whose shards are killed (KILLS=100)
	@$(PYENV)/bin/pip install --quiet --disable-pip-version-check --requirement crates/python/tests/ray.txt
	NANDEX_KILLS=$(KILLS) TESTS="tests/test_shards.py tests/test_ray.py tests/test_docs.py" crates/python/check.sh $(PYENV) $(FLAGS)

.PHONY: wheel
WHEELS ?= $(BUILT)/wheels
wheel: environment ## The Python package's wheel, optimised, in WHEELS
	$(PYENV)/bin/maturin build $(FLAGS) --release --manifest-path crates/python/Cargo.toml --out $(WHEELS)

.PHONY: dist
DIST ?= $(BUILT)/dist
dist: compiler ## The commands, optimised, in DIST, each with its line tables in a file beside it
	$(CARGO) build $(FLAGS) --release -p nandex-cli -p nandex-lab-cli
	mkdir -p $(DIST)
	for name in nandex nandex-lab; do \
	  objcopy --only-keep-debug $(BUILT)/release/$$name $(DIST)/$$name.debug && \
	  objcopy --strip-all --add-gnu-debuglink=$(DIST)/$$name.debug $(BUILT)/release/$$name $(DIST)/$$name || exit 1; \
	done

.PHONY: python-bench
LSH ?=
TFIDF ?=
MAPS ?=
python-bench: environment ## Measure the Python package next to others (LSH="..." TFIDF="..." MAPS="...")
	rm -rf $(PYENV)/bench
	$(PYENV)/bin/maturin build $(FLAGS) --release --manifest-path crates/python/Cargo.toml --out $(PYENV)/bench
	$(PYENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(PYENV)/bench/*.whl
	$(PYENV)/bin/pip install --quiet --disable-pip-version-check "lmdb>=1.4"
	$(PYENV)/bin/python crates/python/bench/lsh.py $(LSH)
	$(PYENV)/bin/python crates/python/bench/tfidf.py $(TFIDF)
	$(PYENV)/bin/python crates/python/bench/maps.py $(MAPS)

# The pages and the files that they link to are copied, so that every link of the book stays inside it.
.PHONY: book
BOOK = $(abspath $(BUILT))/book
MDBOOK_VERSION = 0.5.4
book: tools ## Build the pages of docs as a website in target/book
	@command -v mdbook >/dev/null || $(CARGO) install mdbook --locked --version $(MDBOOK_VERSION)
	rm -rf $(BOOK)-pages && cp -r docs $(BOOK)-pages && cp ARCHITECTURE.md CHANGELOG.md $(BOOK)-pages
	cp --parents $$(grep -rhoE '\]\((\.\./)*(crates|examples)/[^)#]+' docs ARCHITECTURE.md | sed -E 's#\]\((\.\./)*##' | sort -u) $(BOOK)-pages
	sed -i 's#](docs/#](#g' $(BOOK)-pages/ARCHITECTURE.md $(BOOK)-pages/CHANGELOG.md
	find $(BOOK)-pages -name '*.md' -exec sed -Ei 's#\]\(\.\./((\.\./)*)(ARCHITECTURE\.md|CHANGELOG\.md|crates/|examples/)#](\1\3#g' {} +
	MDBOOK_BOOK__SRC=$(BOOK)-pages mdbook build --dest-dir $(BOOK)

.PHONY: deny
deny: ## Licences, bans and sources of the dependencies (needs cargo-deny)
	$(CARGO) deny check bans licenses sources

.PHONY: clean
clean: ## Remove what was built
	$(CARGO) clean

# A target of its own, so that `peers` looks for the libraries after they are installed.
.PHONY: libraries
libraries: compiler
	@ls /usr/include/db.h /usr/include/rocksdb/c.h >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq librocksdb-dev libdb5.3-dev libclang-14-dev; }

# The parts of the toolchain that a bare machine may lack. Nothing happens where they are there.
.PHONY: tools
tools:
	@command -v $(CARGO) >/dev/null || { echo "cargo is missing: install Rust 1.95 or newer from https://rustup.rs" >&2; exit 1; }
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy

.PHONY: compiler
compiler:
	@command -v cc >/dev/null || { apt-get update -qq && apt-get install -y -qq gcc libc6-dev; }

# A private environment for what builds and tests the Python package.
.PHONY: environment
environment: compiler
	@command -v $(CARGO) >/dev/null || { echo "cargo is missing: install Rust 1.95 or newer from https://rustup.rs" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3 python3-venv; }
	@test -x $(PYENV)/bin/pip || $(PYTHON) -m venv $(PYENV)
	@$(PYENV)/bin/pip install --quiet --disable-pip-version-check --requirement crates/python/tests/requirements.txt
