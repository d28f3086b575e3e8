#!/bin/sh
# The command line's contract that every subcommand shares: cli_test.sh PATH-OF-LOCKSTEP
set -u
lockstep=$1
failed=0
out=$(mktemp) err=$(mktemp)
trap 'rm -f "$out" "$err"' EXIT

# expect STATUS STDOUT-PATTERN STDERR-PATTERN ARGUMENT...  ('' as pattern: nothing printed)
expect()
{
    status=$1 want_out=$2 want_err=$3
    shift 3
    "$lockstep" "$@" >"$out" 2>"$err" </dev/null
    got=$?
    [ "$got" -eq "$status" ] || complain "exit status $got, expected $status" "$@"
    matches "$out" "$want_out" || complain "stdout lacks '$want_out': $(cat "$out")" "$@"
    matches "$err" "$want_err" || complain "stderr lacks '$want_err': $(cat "$err")" "$@"
    [ "$status" -ne 2 ] || [ "$(wc -l <"$err")" -eq 1 ] || complain "not one line on stderr" "$@"
}

matches()
{
    if [ -z "$2" ]; then [ ! -s "$1" ]; else grep -q -e "$2" "$1"; fi
}

complain()
{
    echo "lockstep $(shift; echo "$*"): $1" >&2
    failed=1
}

# Of the last command: that stdout was so many JSON objects, a line each.
json_lines()
{
    [ "$(wc -l <"$out")" -eq "$1" ] || complain "not $1 lines: $(cat "$out")" json
    python3 -c 'import json, sys
for line in sys.stdin: assert type(json.loads(line)) is dict' <"$out" 2>"$err" ||
        complain "not JSON: $(cat "$out"; cat "$err")" json
}

expect 0 '^lockstep [0-9]*\.[0-9]*\.[0-9]*$' '' --version
expect 0 '^usage: lockstep COMMAND' '' --help
expect 2 '' "no command given; 'lockstep --help'"
expect 2 '' "unknown command 'fly'; 'lockstep --help'" fly
expect 2 '' "unknown option '--fly'; 'lockstep --help'" --fly
expect 2 '' "unknown command 'benhc'; did you mean 'lockstep bench'?" benhc
expect 2 '' "unknown command 'help'; did you mean 'lockstep --help'?" help
expect 2 '' "unknown option '--verson'; did you mean 'lockstep --version'?" --verson
expect 2 '"code":"LS_INVALID","text":"no command given' 'no command given' --json
json_lines 1
expect 0 '^usage: lockstep COMMAND' '' -h
expect 2 '' "unexpected argument 'now'" --version now
expect 2 '' "unexpected argument 'now'" --help now
expect 2 '' "unknown command ''" ''
expect 2 '' "unknown command 'a?b'" 'a
b'

# ---- bench --------------------------------------------------------------------------

expect 0 '^usage: lockstep bench COMMAND' '' bench --help
expect 2 '' "lockstep bench: no command given; 'lockstep bench --help'" bench
expect 2 '' "unknown command 'fly'; 'lockstep bench --help'" bench fly
expect 2 '"event":"error","code":"LS_INVALID"' "unknown command 'f" bench 'f"ly\' --json
json_lines 1

expect 0 '^usage: lockstep bench allreduce' '' bench allreduce --help
expect 0 '^  --bytes LIST ' '' bench allreduce --ranks 3 --help
expect 0 '^ *4 KiB .* direct$' '' bench allreduce --bytes 4k --seconds 0.001
expect 0 '^ *12 B .* ring$' '' bench allreduce --bytes=12 --ranks=3 --algorithm ring --seconds 0.001
expect 0 '"bench":"allreduce","transport":"local","ranks":5,"bytes":8,"median_us":[0-9.e+-]*,"best_us":[0-9.e+-]*,"algorithm":"direct"}$' \
    '' bench allreduce --bytes 4K,8,1048576 --ranks 5 --transport local --json --seconds 0.001
json_lines 3
for algorithm in auto direct ring halving-doubling hierarchical-copy reduction-to-one-device; do
    expect 0 '"algorithm":"[a-z-]*"' '' \
        bench allreduce --algorithm $algorithm --ranks 3 --bytes 4,20K --json --seconds 0.001
done
expect 0 '"ranks":1,"bytes":4,' '' bench allreduce --ranks 1 --bytes 4 --json --seconds 0.001

for transport in shm tcp mpi; do
    expect 2 '' 'this build has local only so far' bench allreduce --transport $transport
done
expect 2 '"event":"error","code":"LS_UNSUPPORTED"' 'local only' bench allreduce --transport shm --json
json_lines 1
expect 2 '' "'pigeon' is not one of local, shm, tcp, mpi" bench allreduce --transport pigeon
for ranks in 0 -1 1025 2x '' 99999999999999999999 1.5; do
    expect 2 '' "--ranks: '$ranks' is not a whole number from 1 to 1024" bench allreduce --ranks "$ranks"
done
for bytes in 0 6 -4 4KK '4K,' ',4K' '4K,,8' '' junk 2048G 99999999999999999999 "$(seq -s , 4 4 260)"; do
    expect 2 '' "--bytes: '$bytes' is not a list" bench allreduce --bytes "$bytes"
done
for seconds in 0 -1 nan inf 1e9 x 1x '.' ''; do
    expect 2 '' "--seconds: '$seconds' is not a number" bench dispatch --seconds "$seconds"
done
expect 2 '' "'fastest' is not an algorithm; there are auto direct ring" bench allreduce --algorithm fastest
expect 2 '' '--ranks has no value: give a whole number' bench allreduce --ranks
expect 2 '' "--json takes no value, but got '1'" bench allreduce --json=1
expect 2 '' "unknown option '--fly'; 'lockstep bench allreduce --help'" bench allreduce --fly
expect 2 '' "unknown option '--rank'; did you mean --ranks?" bench allreduce --rank 3
expect 2 '' "unknown option '--sec=1'; did you mean --seconds?" bench dispatch --sec=1
expect 2 '"hint":"did you mean ring?"}$' 'did you mean ring?' bench allreduce --json --algorithm rign
json_lines 1
expect 2 '' "unexpected argument '--json'" bench allreduce -- --json # no option, so no JSON either
expect 0 '^usage: lockstep bench dispatch' '' bench dispatch -h
expect 2 '' 'no argument given; usage: lockstep SHELL' --completions
expect 2 '' 'there are no files to read' bench input
for files in '' ',' a,,b "$(seq -s , 65)"; do
    expect 2 '' "--data: '$files' is not up to 64 names of files" bench input --data "$files"
done
expect 2 '' "nowhere/x.tfrecord" bench input --data nowhere/x.tfrecord
expect 2 '"event":"error"' "$lockstep" bench input --data "$lockstep" --json # no TFRecord file
json_lines 1
expect 2 '' "'/dev/null' has fewer records than one batch, 64; give more" bench input --data /dev/null
expect 2 '' "unexpected argument 'now'" bench allreduce now
expect 2 '"text":"unknown option .--fly=.*"}$' "unknown option '--fly=1'" bench dispatch --fly=1 --json

expect 0 '^usage: lockstep bench dispatch' '' bench dispatch --help
expect 0 '^empty run on 2 replicas, traced  *[0-9.]* us$' '' bench dispatch --seconds 0.0001
expect 0 '^{"bench":"dispatch","run_eager_us":[^,]*,"run_traced_us":[^,]*,"allreduce_scalar_us":[^,]*}$' \
    '' bench dispatch --json --seconds 0.0001
json_lines 1

# Results that cannot be written are no results.
if [ -w /dev/full ]; then
    "$lockstep" --version >/dev/full 2>"$err"
    [ $? -eq 1 ] || complain 'a full disk is no failure' --version
    matches "$err" 'cannot write the results' || complain "full disk: $(cat "$err")" --version
fi
exit $failed
