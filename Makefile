# The commands that README.md and CONTRIBUTING.md describe, for all modules of go.work.

SHELL := /bin/bash
# Not in a go.mod: the linter's 200 dependencies would determine the versions of all others there.
LINTER_VERSION := v2.15.0
LINTER := .bin/golangci-lint-$(LINTER_VERSION)
GOVULNCHECK := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0
# make lint runs vet. Without a cache, it takes a quarter of the time to compile.
TEST := go test -vet=off -timeout 60m
TOOLS := cd tools && GOWORK=off
# The race detector needs cgo, and everything compiled a second time.
RACE = $(if $(filter true,$(CI)),-race)
# Packages of integration_test. A package of FIRST lists its tests that make test runs.
FIRST := rekey hostile migrations command guide gorm pgx pglease databasesql
# Our code runs concurrently in these packages. They mostly wait.
LEASES := nodelease zklease pglease service
# go test prints the output of a package only when it ends. Tests append waits, such as for an image, to the file
# TESTS_PROGRESS, and tests that can't run on this machine to TESTS_NOT_RUN.
define report
files=$$(mktemp -d); trap 'kill $$tail 2>/dev/null; rm -rf "$$files"' EXIT; touch "$$files/progress"; \
tail -f "$$files/progress" & tail=$$!; \
export TESTS_PROGRESS=$$files/progress TESTS_NOT_RUN=$$files/not-run; \
status=0; run() { $(TEST) "$$@" || status=$$?; }; $(1) \
if [[ -s $$TESTS_NOT_RUN ]]; then echo "NOT RUN:"; sort -u "$$TESTS_NOT_RUN"; fi; \
exit $$status
endef
FUZZTIME := 2000000x
# A line for each target: its directory and its name.
FUZZ_TARGETS = grep -rE --include=*_test.go '^func Fuzz[A-Z]' . | sed -E 's,^\./(.*)/[^/]*:func (Fuzz[A-Za-z0-9]+).*,\1 \2,' | sort
# For each store of node numbers.
LOAD_TIME := 90s
COUNT := 1
# uuidv7() needs Postgres 18.
BENCH_SERVER = $(if $(DATABASE_URL),,BENCH_OWN_SERVERS=1) POSTGRES_VERSION=$(or $(POSTGRES_VERSION),18) scripts/with-postgres --or-none
# Beside the version in go.mod, which is the oldest supported one.
NEWEST_GO := go1.27.3
MODULES := . bench cmd/sortkey examples integration_test metrics nodelease/zklease rekey
# The modules that users import or install, beside the root.
NESTED := cmd/sortkey metrics nodelease/zklease rekey
# Of the binaries of the command.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

# Compilers, the linter and tests collect garbage half as often: it took a tenth of their time.
# The linter takes up to 5 GB.
lint test unit integration newest: export GOGC ?= 200
# With the race detector, each process sleeps at its end, by default for a second, and some tests start
# fifty of them.
unit integration: export GORACE ?= atexit_sleep_ms=100

.PHONY: help demo test test-all lint vuln unit integration newest fuzz soak load bench docs binaries api tidy clean

help: ## list the commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## run the quickstart on DATABASE_URL, a Postgres container or local server binaries
	scripts/with-postgres go run ./examples/quickstart

test: ## unit tests, and the integration tests that fail first, on one Postgres: 5 minutes, or 2 with a build cache
	@$(call report,run -short $(FIRST:%=./integration_test/%) ./... $(NESTED:%=./%/...);)

test-all: ## all tests; POSTGRES_VERSIONS="15 17 19" selects containers, DATABASE_URL a server
	@# Get images while the unit tests run. Integration tests wait for missing images and report the wait.
	@[[ -n "$$DATABASE_URL" ]] || { scripts/image tests >/dev/null 2>&1 & trap "kill $$! 2>/dev/null || :" EXIT; }; \
	$(MAKE) --no-print-directory unit && $(MAKE) --no-print-directory integration

lint: $(LINTER) ## go vet, static analysis, import rules, scripts, links, prose, and whether generated documentation is current
	$(LINTER) run $(MODULES:%=./%/...)
	@# With an int of 32 bits.
	GOARCH=386 go vet ./...
	@# tools is outside of the workspace, because its dependencies would raise the versions in the other modules.
	$(TOOLS) $(CURDIR)/$(LINTER) run ./...
	$(TOOLS) go run ./docs -check
	$(TOOLS) go tool actionlint $(CURDIR)/.github/workflows/*.yml
	@command -v shellcheck >/dev/null || { echo "lint: shellcheck is missing; run 'apt-get install shellcheck' or 'brew install shellcheck'" >&2; exit 1; }
	shellcheck -x scripts/* .ci/run

vuln: ## look for known vulnerabilities in the code that our packages and tests call; needs a network, so lint and test don't run it
	@status=0; for module in $(MODULES); do \
		echo "vuln $$module"; (cd $$module && $(GOVULNCHECK) -test ./...) || status=1; done; \
	echo "vuln tools"; ($(TOOLS) $(GOVULNCHECK) -test ./...) || status=1; \
	exit $$status

# Look in the module cache first, for machines without a network.
$(LINTER):
	GOBIN=$(CURDIR)/.bin GOPROXY="file://$$(go env GOMODCACHE)/cache/download,$$(go env GOPROXY)" \
		go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER_VERSION)
	mv .bin/golangci-lint $@

unit: ## all unit tests, and one iteration of each benchmark
	$(TEST) $(RACE) $$(go list ./... | grep -v '/migrations$$') ./bench/... $(NESTED:%=./%/...)
	$(TEST) ./migrations ./examples/...
	@# These tests skip the race detector, or do less with it: it makes them slow, and the order of the simulation random.
	$(if $(RACE),$(TEST) -run '^(TestSimulation|TestDifferential|TestModel|TestResume|TestDecimalText|Test.*InWords)' ./idtype ./nodelease ./pgxcodec)
	@# With an int of 32 bits, only in CI, because it compiles everything again.
	$(if $(filter true,$(CI)),$(TEST_386))
	$(TOOLS) $(TEST) ./...
	$(TEST) -run '^$$' -bench . -benchtime 1x ./bench -captime 20ms >/dev/null
	$(TEST) -run '^$$' -bench . -benchtime 1x ./bench/pgx ./bench/gorm ./bench/insert ./bench/grow ./bench/window ./bench/rekey >/dev/null

# Some virtual machines run no 386 programs. make lint compiles all tests for 386.
define TEST_386
export GOARCH=386 CGO_ENABLED=0; \
if $(TEST) -run '^$$' ./internal/typename >/dev/null 2>&1; then $(TEST) -short ./...; \
else echo "NOT RUN: unit tests for 386, because this machine runs no 386 programs"; fi
endef

integration: ## all integration tests
	@# The packages of leases wait for a server with a timeout, so they run after all are compiled. The load test in ./service
	@# measures how long faults last, so it runs alone.
	@# CI uses the race detector there. The other packages would take twice as long with it.
	@cd integration_test && $(call report,\
	leases='/\($(subst $() ,\|,$(LEASES))\)$$'; \
	run -count=1 $(filter-out $(LEASES:%=./%),$(FIRST:%=./%)) $$(go list ./... | grep -v "$$leases"); \
	run $(RACE) -exec true $(LEASES:%=./%) >/dev/null; \
	run -count=1 $(RACE) -p 3 $(filter-out ./service,$(LEASES:%=./%)); \
	run -count=1 $(RACE) ./service;)

newest: ## the tests of make test with the newest Go, on Postgres 17
	@$(call report,export GOTOOLCHAIN=$(NEWEST_GO) POSTGRES_VERSIONS=17; run -short $(FIRST:%=./integration_test/%) ./... $(NESTED:%=./%/...);)

fuzz: ## fuzz every parser, scanner and codec, with FUZZTIME inputs each; FUZZ="sqltypes FuzzScan": one target
	@# By default, go test spends up to a minute on each input with new coverage, and package regexp has new coverage at random.
	@$(FUZZ_TARGETS) | grep -E '$(or $(FUZZ),.)' | while read -r package target; do \
		echo "fuzz $$package $$target"; \
		(cd $$package && go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x) || exit 1; done

soak: ## check a billion IDs of each format for duplicates, simulate 200,000 fleets and look for planted bugs, inject faults into leases, the service and SQL defaults for 45 minutes, and rekey 11 million rows
	@# In parallel, because some of the clocks make their callers sleep most of the time. Each test keeps up to 10 million IDs in memory.
	SORTKEY_UNIQUE=1000000000 go test -count=1 -timeout 120m -parallel 6 -run '^TestUnique' -v ./idtype
	@# Each process uses one processor.
	go test -c -o .bin/simulation ./nodelease && cd nodelease && \
	SORTKEY_SIMULATION=1-1000 ../.bin/simulation -test.run '^TestPlantedBugs$$' -test.v -test.timeout 60m && \
	printf '%s\n' 1-50000 50001-100000 100001-150000 150001-200000 | \
		xargs -P $$(getconf _NPROCESSORS_ONLN) -I SEEDS env SORTKEY_SIMULATION=SEEDS ../.bin/simulation -test.run '^TestSimulation$$' -test.v -test.timeout 300m
	cd integration_test && SORTKEY_SOAK=10m go test -count=1 -timeout 60m -run '/chaos' -v ./nodelease
	$(MAKE) --no-print-directory load LOAD_TIME=5m
	cd integration_test && SORTKEY_SOAK=2m go test -count=1 -timeout 60m -run '^TestServer(Storm|ClockJitter)' -v ./migrations
	cd integration_test && SORTKEY_SOAK=1m go test -count=1 -timeout 180m -run '^Test(Load|Kill)' -v ./rekey

load: ## run examples/service under load with faults for 3 minutes, and print the results in Markdown
	@report=$$(mktemp); trap 'rm -f "$$report"' EXIT; cd integration_test && \
	SORTKEY_SOAK=$(LOAD_TIME) SORTKEY_REPORT=$$report go test -count=1 -timeout 60m -run '^TestLoad' ./service >&2 && cat "$$report"

bench: ## run the benchmarks (20 minutes) and write docs/benchmarks.md and the figures in README.md; QUICK=1: 3 minutes, to .bin; BENCH=Next COUNT=6: for benchstat
ifdef BENCH
	$(BENCH_SERVER) go test -run '^$$' -bench '$(BENCH)' -count $(COUNT) -p 1 -timeout 120m ./bench/...
else
	$(BENCH_SERVER) go run ./bench/report $(if $(QUICK),-quick)
	$(if $(QUICK),,$(TOOLS) go run ./docs)
endif

docs: ## update the generated parts of README.md and docs: code, figures, drawings
	$(TOOLS) go run ./docs

binaries: ## build the command for five platforms, with checksums, in .bin/release
	@rm -rf .bin/release && mkdir -p .bin/release
	@for platform in $(PLATFORMS); do \
		name=sortkey_$${platform/\//_}; program=sortkey; [[ $$platform != windows/* ]] || program=sortkey.exe; echo "$$name"; \
		(cd cmd/sortkey && CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -trimpath -ldflags=-s -o ../../.bin/release/$$name/$$program .) && \
		cp LICENSE .bin/release/$$name && tar -C .bin/release -czf .bin/release/$$name.tar.gz $$name && rm -r .bin/release/$$name || exit 1; done
	@cd .bin/release && shasum -a 256 *.tar.gz >SHA256SUMS

api: ## compare the exported API with the last release
	scripts/api

tidy: ## go mod tidy in every module
	@# go install rejects a replace directive in cmd/sortkey. Without one, tidy needs a published version of the root module.
	@cd cmd/sortkey && go mod edit -replace github.com/sortkey/sortkey=../.. -replace github.com/sortkey/sortkey/rekey=../../rekey
	@status=0; for module in $(MODULES) tools; do (cd $$module && GOWORK=off go mod tidy) || status=1; done; \
	cd cmd/sortkey && go mod edit -dropreplace github.com/sortkey/sortkey -dropreplace github.com/sortkey/sortkey/rekey && exit $$status

clean: ## remove .bin, with the linter and the output of benchmarks
	rm -rf .bin
