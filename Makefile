# What can be made. make test needs Go and nothing else; the other tools are
# built by Go on first use, from the modules under tools/.

.DEFAULT_GOAL := help
GO       ?= go
FUZZTIME ?= 30s
BENCH    ?= .
SOAK     ?= 10000000
SOAK_FOR ?= 8h
TARGETS  ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
CHAOS_FOR ?= 4m
TOOL     := $(GO) tool -modfile=tools/go.mod
LINT     := $(GO) tool -modfile=tools/lint/go.mod golangci-lint
CORE     := . ./agreement/eig/sliced ./lockstep/... ./stack/... ./mux/... ./seq/... ./faulty/... ./sim/... ./trace/... \
            ./cluster/link ./cluster/host

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile everything, and the command to bin/parley
	$(GO) build ./...
	$(GO) build -o bin/parley ./cmd/parley

.PHONY: test
test: ## run all tests; needs only Go, and no privileges
	$(GO) test ./...

.PHONY: steady
steady: ## run all tests 20 times in a row, some on one processor and some beside busy loops; none may fail
	$(GO) run ./internal/steady

.PHONY: steady-short
steady-short: ## run the tests of packages changed since BASE (by default, since the branch left main) three times
	$(GO) run ./internal/steady -short $(if $(BASE),-base $(BASE))

.PHONY: check
check: vet cross staticcheck lint storebench drift rename-check vuln ## run all checks of the source: the next eight

.PHONY: vet
vet: ## run go vet, also on the tools
	$(GO) vet ./...
	$(GO) -C tools vet ./...

.PHONY: cross
cross: ## compile the command for Windows and macOS, and the packages that make and show runs for WebAssembly
	GOOS=windows $(GO) build -o /dev/null ./cmd/parley
	GOOS=darwin $(GO) build -o /dev/null ./cmd/parley
	GOOS=js GOARCH=wasm $(GO) build ./run ./catalog ./sim ./explore ./trace ./internal/draw/... ./internal/form ./internal/report
	GOOS=js GOARCH=wasm $(GO) build -o /dev/null ./cmd/labwasm

.PHONY: staticcheck
staticcheck: ## run staticcheck
	$(TOOL) staticcheck ./...

.PHONY: lint
lint: ## run golangci-lint; its first build takes minutes
	$(GO) -C tools/lint mod tidy -diff
	$(LINT) run ./...

.PHONY: dist
dist: ## build a release of the last commit into dist: binaries, .deb, .rpm, image, module lists, checksums; TARGETS selects
	$(GO) -C tools/dist run . -out ../../dist -targets '$(TARGETS)'

.PHONY: dist-check
dist-check: ## check what make dist has built: install, run, compare; needs Linux, root, dpkg, systemd-analyze
	$(GO) -C tools/dist mod tidy -diff
	$(GO) -C tools/dist vet ./...
	$(GO) -C tools/dist test . -count=1 -v -dist ../../dist -targets '$(TARGETS)'

.PHONY: site
site: ## write the lab as static files into dist/site, which any web server can serve
	$(GO) run ./internal/lab/site -out dist/site

.PHONY: lab-size
lab-size: ## demand that the lab's engine for the browser is small
	$(GO) run ./internal/lab/site -size

.PHONY: storebench
storebench: ## vet the comparison of logs in tools/storebench; its first build takes a minute
	$(GO) -C tools/storebench mod tidy -diff
	$(GO) -C tools/storebench vet ./...

.PHONY: drift
drift: ## demand that go.mod, go.sum and generated files are up to date
	bash .ci/drift

.PHONY: rename-check
rename-check: ## rename a copy of the module, and compile it and its tests
	bash .ci/rename-check

.PHONY: vuln
vuln: ## run govulncheck, if the database of vulnerabilities can be reached
	bash .ci/vuln

.PHONY: test-browser
test-browser: ## test the lab in a browser, served and static; needs Chromium; ONLY selects tests
	$(GO) -C tools/browser mod tidy -diff
	$(GO) -C tools/browser vet ./...
	$(GO) -C tools/browser test ./... -count=1 -parallel 4 -timeout 20m $(if $(ONLY),-run '$(ONLY)')

.PHONY: lab-performance
lab-performance: ## measure the lab in a browser, and write docs/lab-performance.md; needs Chromium
	$(GO) -C tools/browser test . -count=1 -run '^TestPerformance$$' -v -timeout 30m -performance

.PHONY: lab-shots
lab-shots: ## take the pictures of the lab in docs/img; needs Chromium
	$(GO) -C tools/browser test . -count=1 -run '^TestShots$$' -shots

.PHONY: race
race: ## run all tests with the race detector; needs a C compiler
	$(GO) test -race ./...

.PHONY: race-core
race-core: ## run the tests of the core packages with the race detector
	$(GO) test -race $(CORE)

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME, 30s unless given
	bash .ci/fuzz $(FUZZTIME)

.PHONY: fuzz-short
fuzz-short: ## fuzz each quickly built decoder of foreign bytes for 1 s, as CI does
	bash .ci/fuzz 1s '^(\.|./trace|./cluster/(link|cert)) Fuzz(Decode|Hello|Load|Parse|Read.*)$$'

.PHONY: mutants
mutants: ## seed bugs, one at a time: the tests must catch each; ONLY=GLOB, or ONLY=assurance
	$(GO) run ./internal/mutants $(if $(ONLY),-only '$(ONLY)')

.PHONY: mutants-short
mutants-short: ## seed six bugs, each caught by a few tests
	$(GO) run ./internal/mutants -short

.PHONY: explore
explore: ## search every state of the small systems in explore/testdata/cases.txt; ONLY selects some
	$(GO) run ./internal/explorecases $(if $(ONLY),-only '$(ONLY)')

.PHONY: explore-mutants
explore-mutants: ## find the seeded bugs by such searches, as testdata/mutants.txt of each package lists; ONLY selects some
	$(GO) test ./internal/mutants -run '^TestExplored$$' -count=1 -timeout 0 -v -explore $(if $(ONLY),-mutants '$(ONLY)')

.PHONY: grid
grid: ## run every protocol against every kind of fault, many seeds each; ONLY selects protocols
	$(GO) run ./internal/faultgrid $(if $(ONLY),-only '$(ONLY)')

.PHONY: bench
bench: ## run the benchmarks; BENCH selects some by a regular expression
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

.PHONY: performance
performance: ## measure whole systems, and write the table of docs/reference/performance.md
	$(GO) run ./internal/performance

.PHONY: bench-spin
bench-spin: ## search one model with SPIN and with parley; needs spin, gcc and GNU time
	bash docs/explanation/spin/run.sh

.PHONY: test-net
test-net: ## run the tests of cut networks and full disks; needs Linux, root, /dev/net/tun, loop devices, mount, mkfs.ext4
	$(GO) test -tags testnet ./internal/chaos -run '^TestNetworksAndDisks$$' -v -count=1

.PHONY: chaos
chaos: build ## inject faults into five real nodes for CHAOS_FOR, one of which lies, and judge; needs what test-net needs; SEED and ONLY select
	$(GO) test -c -o bin/liar.test ./cluster
	$(GO) run ./internal/chaos -parley bin/parley -liar bin/liar.test -for $(CHAOS_FOR) $(if $(SEED),-seed $(SEED)) $(if $(ONLY),-only '$(ONLY)')
	$(if $(ONLY),,$(MAKE) chaos-byzantine)

.PHONY: chaos-byzantine
chaos-byzantine: build ## kill and stop real nodes for CHAOS_FOR while another one lies in their Byzantine group, and judge; needs no privileges
	$(GO) test -c -o bin/liar.test ./cluster
	$(GO) run ./internal/chaos -byzantine -parley bin/parley -liar bin/liar.test -for $(CHAOS_FOR) $(if $(SEED),-seed $(SEED)) $(if $(ONLY),-only '$(ONLY)')

.PHONY: chaos-byzantine-short
chaos-byzantine-short: build ## the same for some seconds, with three kinds of faults
	$(GO) test -c -o bin/liar.test ./cluster
	$(GO) run ./internal/chaos -byzantine -parley bin/parley -liar bin/liar.test -for 12s -seed 1 -only kill-quick,stop,restart-all

.PHONY: audit
audit: ## agree 1,000 times, with traitors of every kind among real processes, and audit the traces; ONLY selects some
	$(GO) run ./internal/audit $(if $(ONLY),-only '$(ONLY)')

.PHONY: audit-order
audit-order: ## audit only the Byzantine total order, beside four busy loops, with traitors of every kind; ONLY selects some
	$(GO) run ./internal/audit -service order -stress 4 $(if $(ONLY),-only '$(ONLY)')

.PHONY: chaos-short
chaos-short: build ## kill and stop five real nodes for some seconds, and judge; needs no privileges
	$(GO) run ./internal/chaos -parley bin/parley -bare -for 15s -seed 1 -only kill-quick,stop,restart-all

.PHONY: audit-short
audit-short: ## agree 50 times with two-faced traitors among real processes, and audit the traces
	$(GO) run ./internal/audit -instances 50 -only '(4,1) t'

.PHONY: soak
soak: build ## run five real nodes under load for SOAK_FOR, by default 8 hours: nothing may leak
	$(GO) run ./internal/chaos -parley bin/parley -bare -soak -for $(SOAK_FOR)

.PHONY: soak-sim
soak-sim: ## simulate ten million broadcasts of each ordered broadcast while a member is paused: memory must not grow; ONLY selects one
	$(GO) test ./sim -run 'TestSoak$(if $(ONLY),/$(ONLY)$$)' -v -count=1 -timeout 0 -soak $(SOAK)

.PHONY: tetra
tetra: ## check the agreement tetra: 100,000 seeds, and its rules in views 0 to 2 exhaustively; takes half an hour and 2 GB
	$(GO) test ./agreement/tetra -run 'TestSeeds|TestRules' -count=1 -v -seeds 100000 -rules.views 2 -timeout 2h

.PHONY: tetra-short
tetra-short: ## check the agreement tetra: 3,000 seeds, and its rules in views 0 and 1
	$(GO) test ./agreement/tetra -run 'TestSeeds|TestRules' -count=1 -v -seeds 3000

.PHONY: failover-short
failover-short: ## kill each of three nodes that broadcast, and measure the delay at the others
	$(GO) run ./cmd/parley bench failover --reps 1 --before 300ms --after 500ms

.PHONY: tutorials
tutorials: ## run the tutorials, between real processes; needs bash, curl, git and python3; ONLY selects one: build
	$(GO) test ./cli -run 'TestTutorials$(if $(ONLY),/$(ONLY))' -count=1 -v -tutorials

.PHONY: foreign
foreign: ## run the example nodes in Python and JavaScript; needs python3, and node for the second
	$(GO) test ./cli -run '^TestForeignExamples$$' -count=1 -v -examples

.PHONY: real
real: mutants-short audit-short chaos-short chaos-byzantine-short failover-short demo foreign tutorials ## run the tests that need real processes and real time, in their short form

.PHONY: demo
demo: ## run the demo: four processes agree although one lies, and continue after one is killed
	$(GO) run ./cmd/parley demo --once

.PHONY: cover
cover: ## write the share of statements that tests reach, by function, to cover.out
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./...
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: generate
generate: ## write the generated files
	$(GO) generate ./...

.PHONY: reference
reference: ## write the generated parts of docs/reference, and the JSON Schemas
	$(GO) run ./internal/reference

.PHONY: man
man: ## write a manual page for each command to man/
	$(GO) run ./internal/reference -man man

.PHONY: rename
rename: ## give the module another path everywhere: make rename MODULE=example.org/parley
	@test -n "$(MODULE)" || { echo 'make rename: say which: make rename MODULE=example.org/parley' >&2; exit 2; }
	$(GO) -C tools run ./rename -root .. '$(MODULE)'
