# The commands of README.md and CONTRIBUTING.md, over all modules of go.work.

SHELL := /bin/bash
LINTER := .bin/golangci-lint
# Without the race detector's runtime (it needs cgo): make test RACE=
RACE := -race
FUZZTIME := 30s
COUNT := 1
# uuidv7() is of Postgres 18.
BENCH_SERVER = POSTGRES_VERSION=$(or $(POSTGRES_VERSION),18) scripts/with-postgres --or-none
comma := ,
IMAGES := scripts/test-images $(subst $(comma), ,$(POSTGRES_VERSIONS)) >/dev/null
MODULES := . bench examples integration_test

.PHONY: help demo test lint unit integration fuzz soak bench tidy clean

help: ## list the commands
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## run the quickstart on DATABASE_URL, a Postgres container, local server binaries or SQLite
	scripts/with-postgres --or-none go run ./examples/quickstart

test: ## everything: static analysis, unit tests, integration tests on real Postgres
	@# Images are pulled or built meanwhile.
	@$(IMAGES) & images=$$!; trap 'kill $$images 2>/dev/null' EXIT; \
	$(MAKE) --no-print-directory lint unit && wait $$images && $(MAKE) --no-print-directory integration IMAGES=:

lint: $(LINTER) ## vet, static analysis and the import rules
	@for module in $(MODULES); do \
		echo "lint $$module"; (cd $$module && $(CURDIR)/$(LINTER) run ./...) || exit 1; done
	@# Where an int has 32 bits.
	GOARCH=386 go vet ./...

$(LINTER): tools/go.mod tools/go.sum
	cd tools && GOWORK=off go build -o ../$(LINTER) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

unit: ## unit tests with the race detector
	go test $(RACE) ./... ./examples/... ./bench/...
	@# Each benchmark once, to see that it runs.
	go test -run '^$$' -bench . -benchtime 1x ./bench -captime 20ms >/dev/null
	go test -run '^$$' -bench . -benchtime 1x ./bench/pgx ./bench/gorm ./bench/insert ./bench/grow ./bench/window >/dev/null

integration: ## integration tests; POSTGRES_VERSIONS="15 17 18" chooses containers, DATABASE_URL a server
	@# The tests get images themselves, but out of sight: here one sees them being pulled or built.
	@$(IMAGES)
	@# The faults of nodelease come by themselves: what takes a TTL elsewhere would be one more.
	@not_run=$$(mktemp); trap 'rm -f "$$not_run"' EXIT; \
	export TESTS_NOT_RUN=$$not_run; status=0; cd integration_test; \
	go test $(RACE) -count=1 -timeout 20m $$(go list ./... | grep -v /nodelease) || status=$$?; \
	go test $(RACE) -count=1 -timeout 20m ./nodelease/... || status=$$?; \
	if [[ -s $$not_run ]]; then echo "NOT RUN, since they need Docker:"; sort -u "$$not_run"; fi; \
	exit $$status

fuzz: ## fuzz every parser, scanner and codec for FUZZTIME each
	@for package in ./idtype ./sqltypes ./pgxcodec; do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "fuzz $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; done; done

soak: ## 100 million IDs of each format, without a repeat, and twenty minutes of faults to those who hold node numbers
	SORTKEY_UNIQUE=100000000 go test -count=1 -timeout 60m -run '^TestUnique' -v ./idtype
	cd integration_test && SORTKEY_SOAK=10m go test -count=1 -timeout 60m -run '/chaos' -v ./nodelease

bench: ## measure everything, and write docs/benchmarks.md: 45 minutes; QUICK=1: three, elsewhere; BENCH=Next COUNT=6: for benchstat
ifdef BENCH
	$(BENCH_SERVER) go test -run '^$$' -bench '$(BENCH)' -count $(COUNT) -p 1 -timeout 120m ./bench/...
else
	$(BENCH_SERVER) go run ./bench/report $(if $(QUICK),-quick)
endif

tidy: ## go mod tidy in every module
	@for module in $(MODULES); do (cd $$module && GOWORK=off go mod tidy) || exit 1; done

clean: ## remove what the commands above made in this folder
	rm -rf .bin
