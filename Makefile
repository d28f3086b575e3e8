# The front door. Each target installs the Debian packages it needs (with sudo when not root;
# nothing when all is there) and then does its job. `make help` lists them.
#
#   PREFIX=/usr/local  DESTDIR=   where `make install` puts things
#   BUILD=build                   the build folder
#   SECONDS=60  TARGET=NAME       how long `make fuzz` searches for each target, or for this one
#   MODELS="cnn resnet gpt"       what `make accept` trains
#   PEERS=~/.cache/lockstep/peers where TensorFlow and PyTorch are installed, to compare with
#   ROUNDS=3                      how often `make bench` and `make bench-growth` measure all
#   RUNS=10                       how often `make soak` trains in each setting
#   RANKS=1024  STEP=61          how far and how densely `make verify-schedules` goes

BUILD ?= build
PREFIX ?= /usr/local
PEERS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lockstep/peers
deps = @tools/install-deps

.NOTPARALLEL:
.PHONY: all help train test accept fuzz bench bench-growth bench-input bench-kernels bench-reduce bench-steps verify-schedules soak install uninstall format clean

all: $(BUILD)/build.ninja ## build everything; the command is build/lockstep
	@ninja -C $(BUILD)

help: ## show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

train: data $(BUILD)/build.ninja ## train a small CNN on Fashion-MNIST: one epoch of `lockstep train`
	@ninja -C $(BUILD) lockstep
	@$(BUILD)/lockstep train

accept: data $(BUILD)/build.ninja ## train cnn, resnet and gpt at length (an hour): do they reach what is promised?
	@ninja -C $(BUILD) lockstep
	@tools/accept $(BUILD)/lockstep $(MODELS) | tee docs/accept.log; \
		tail -n 1 docs/accept.log | grep -q '^accept: all reached$$'

test: ## the whole proof: release, sanitizers (addresses, threads), clang, no optional library
	$(deps) build data test
	@tools/run-tests

fuzz: ## search for bytes that break a reader, with clang's libFuzzer (SECONDS=60 each, TARGET=NAME for one)
	$(deps) build test
	@[ -f build-fuzz/build.ninja ] || CC=clang meson setup build-fuzz -Dlibfuzzer=enabled \
		-Db_sanitize=address,undefined -Db_lundef=false >/dev/null
	@ninja -C build-fuzz
	@$(foreach target,$(or $(TARGET),$(patsubst fuzz/%_fuzz.c,%,$(wildcard fuzz/*_fuzz.c))),$(search))

# Where a target begins; else in fuzz/corpus/TARGET.
seeds_example_parse = fuzz/corpus/example
seeds_graph_read = fuzz/corpus/graph
seeds_jpeg = tests/images
seeds_npy = tests/golden_arrays
seeds_npz = tests/golden_arrays
seeds_png = tests/images
search = echo "== $(target)"; mkdir -p build-fuzz/corpus/$(target); \
	ONEDNN_MAX_CPU_ISA=AVX2 build-fuzz/fuzz/$(target)_libfuzzer \
		-max_total_time=$(or $(SECONDS),60) -print_final_stats=1 -artifact_prefix=build-fuzz/ \
		build-fuzz/corpus/$(target) $(or $(seeds_$(target)),fuzz/corpus/$(target)) || exit 1;

bench: all ## train beside TensorFlow and PyTorch by turns (half an hour): ratios as table, JSON and SVG
	$(deps) bench data
	@tools/venv $(PEERS)
	@python3 bench/training/run.py --build $(BUILD) --peers $(PEERS) --rounds $(or $(ROUNDS),3)

bench-growth: all ## time and memory over replicas, batch and parameters, beside the ideal: table, JSON and SVG
	$(deps) bench data
	@python3 bench/training/growth.py --build $(BUILD) --rounds $(or $(ROUNDS),3)

bench-steps: all ## compare single steps and what calls cost with TensorFlow and PyTorch
	$(deps) bench
	@tools/venv $(PEERS)
	@bench/run $(BUILD) $(PEERS)

bench-kernels: all ## compare our kernels with the best oneDNN call, shape by shape
	@if [ -x $(BUILD)/bench/kernels ]; then OMP_NUM_THREADS=1 $(BUILD)/bench/kernels; \
	else echo 'bench-kernels: built without oneDNN, so there is nothing to compare with' >&2; exit 1; fi

bench-reduce: all ## compare all-reduce and fused Adam with a bare sum, two passes and Open MPI
	$(deps) bench-mpi
	@bench/reduce_peers $(BUILD)

bench-input: all ## compare reading and parsing records with tf.data; how long replicas wait for input
	$(deps) bench data
	@tools/venv $(PEERS)
	@bench/input_peers $(BUILD) $(PEERS)

verify-schedules: $(BUILD)/build.ninja ## prove the collectives' schedules up to RANKS=1024, every STEP=61 above 64
	$(deps) build test
	@ninja -C $(BUILD) src/collective_schedule_test
	@$(BUILD)/src/collective_schedule_test $(or $(RANKS),1024) $(STEP)

soak: $(BUILD)/build.ninja ## prove the same bits on any devices: every optimizer, V, placement and pack, RUNS=10 times
	$(deps) build test
	@ninja -C $(BUILD) tests/same_bits_test
	@$(BUILD)/tests/same_bits_test soak $(or $(RUNS),10)

install: all ## install the library, headers and command (PREFIX, DESTDIR)
	@meson configure $(BUILD) -Dprefix=$(PREFIX) && ninja -C $(BUILD)
	@meson install -C $(BUILD) --no-rebuild --quiet $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	@$(if $(DESTDIR),,if [ "$$(id -u)" -eq 0 ]; then ldconfig; fi)

uninstall: ## remove what install put there (same PREFIX, DESTDIR)
	@[ ! -f $(BUILD)/build.ninja ] || meson configure $(BUILD) -Dprefix=$(PREFIX)
	@tools/uninstall $(BUILD) $(if $(DESTDIR),$(abspath $(DESTDIR)))

format: ## format the C sources
	$(deps) format
	@find include src cli examples tests bench fuzz -name '*.[ch]' -exec clang-format -i {} +

clean: ## remove everything that was built
	rm -rf build build-*

.PHONY: data deps-build
data:
	$(deps) data

deps-build:
	$(deps) build

$(BUILD)/build.ninja: | deps-build
	@meson setup $(BUILD) --prefix=$(PREFIX)
