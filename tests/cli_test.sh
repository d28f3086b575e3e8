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

expect 0 '^lockstep [0-9]*\.[0-9]*\.[0-9]*$' '' --version
expect 0 '^usage: lockstep COMMAND' '' --help
expect 2 '' "no command given; 'lockstep --help'"
expect 2 '' "unknown command 'fly'; 'lockstep --help'" fly
expect 2 '' "unknown option '--fly'; 'lockstep --help'" --fly
expect 2 '' "unexpected argument 'now'" --version now
expect 2 '' "unexpected argument 'now'" --help now
expect 2 '' "unknown command ''" ''
exit $failed
