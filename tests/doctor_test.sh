#!/bin/sh
# `lockstep doctor` in surroundings that lack something: doctor_test.sh PATH-OF-LOCKSTEP
# What this host has is not known here, so states are expected only where the test makes them so.
set -u
lockstep=$1
case $lockstep in /*) ;; *) lockstep=$PWD/$lockstep ;; esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
complain() { echo "doctor_test: $*" >&2; failed=1; }

# has STATE CHECK PATTERN: of the last doctor, whose JSON lines are in $tmp/out
has()
{
    grep -e "\"check\":\"$2\",\"state\":\"$1\"" "$tmp/out" | grep -q -e "$3" ||
        complain "no $1 of $2 with '$3': $(grep -e "\"check\":\"$2\"" "$tmp/out")"
}

unset CC

# doctor [NAME=VALUE]...: with these in the environment. All of Fashion-MNIST is read only once.
doctor() { env "$@" "$lockstep" doctor --json >"$tmp/out" 2>"$tmp/err"; }

# ---- the form ------------------------------------------------------------------------------

doctor
status=$?
python3 - "$tmp/out" $status <<'END' || complain 'JSON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
if lines[-1]["event"] == "error":
    assert sys.argv[2] == "1", sys.argv[2]
    lines.pop()
else:
    assert sys.argv[2] == "0", sys.argv[2]
end = lines.pop()
assert list(end) == ["event", "ok", "warn", "fail"] and end["event"] == "end", end
for line in lines:
    assert list(line) == ["event", "group", "check", "state", "text", "hint"], line
    assert line["event"] == "check" and line["text"], line
    assert len(line["check"]) <= 14, line  # fits its column
    assert line["state"] != "FAIL" or line["hint"], line
for state in "OK", "WARN", "FAIL":
    assert end[state.lower()] == sum(line["state"] == state for line in lines), end
assert (end["fail"] > 0) == (sys.argv[2] == "1"), end
names = {line["check"] for line in lines}
wanted = {"cores", "SIMD", "bf16, AMX", "memory", "large pages", "shared memory", "open files", "temporary",
          "here", "ports", "terminal", "lockstep", "math profile", "two replicas", "oneDNN", "zlib", "jansson", "GPUs", "MPI",
          "C compiler", "Fashion-MNIST", "text for gpt"}
assert wanted <= names, wanted - names
END
has OK 'two replicas' 'a sum that is right'
has OK lockstep 'command and library'
has OK terminal 'plain lines'

LOCKSTEP_FASHION_MNIST=$tmp/nowhere
export LOCKSTEP_FASHION_MNIST
"$lockstep" doctor >"$tmp/text" 2>"$tmp/err"
[ $? -eq $status ] || complain 'the status depends on --json'
grep -q '^  OK    cores  \|^  WARN  cores  ' "$tmp/text" || complain "no cores: $(cat "$tmp/text")"
grep -q '^[0-9]* OK, [0-9]* WARN, [0-9]* FAIL$' "$tmp/text" || complain 'no sum'
LC_ALL=C awk 'length($0) > 80 && !/\// { exit 1 }' "$tmp/text" || complain 'wider than 80 columns'
! grep -q "$(printf '\033')" "$tmp/text" || complain 'colours in a file'

# ---- what is missing -------------------------------------------------------------------------

doctor "PATH=$tmp" LOCKSTEP_ISA=base
[ $? -eq $status ] || complain "what can be done without is a failure: $(cat "$tmp/out")"
has WARN 'C compiler' 'install gcc'
has OK MPI 'no mpirun'
has WARN 'text for gpt' 'bible-kjv'
has WARN Fashion-MNIST 'dataset-fashion-mnist'
doctor LOCKSTEP_ISA=mmx
[ "$(uname -m)" != x86_64 ] || has WARN SIMD 'LOCKSTEP_ISA=mmx is none of base, avx2 and avx512'

# Programs that are there, of which none is run.
for program in cc bible mpirun nvidia-smi; do
    printf '#!/bin/sh\necho ran >>%s/ran\n' "$tmp" >"$tmp/$program" && chmod +x "$tmp/$program"
done
doctor "PATH=$tmp"
has OK 'C compiler' "$tmp/cc"
has OK 'text for gpt' "$tmp/bible"
has OK MPI "$tmp/mpirun"
has WARN GPUs 'on CPUs only'
doctor "PATH=$tmp" 'CC= mpirun  -O2'
has OK 'C compiler' "$tmp/mpirun, which CC names"
doctor "PATH=$tmp" CC=icc
has WARN 'C compiler' "CC names 'icc', which is not there"
[ ! -e "$tmp/ran" ] || complain 'a program was run'

# ---- what is wrong -------------------------------------------------------------------------------

doctor "TMPDIR=$tmp/nowhere"
[ $? -eq 1 ] || complain 'no place for temporary files is no failure'
has FAIL temporary 'set TMPDIR'
grep -q '^lockstep doctor: 1 check failed; \|^lockstep doctor: [0-9]* checks failed; ' "$tmp/err" ||
    complain "stderr: $(cat "$tmp/err")"
[ "$(wc -l <"$tmp/err")" -eq 1 ] || complain 'not one line on stderr'
tail -n 1 "$tmp/out" | grep -q '"event":"error","code":"LS_UNSUPPORTED"' || complain 'no event of the error'

mkdir "$tmp/damaged"
for file in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
    echo 'no data' >"$tmp/damaged/$file-ubyte.gz"
done
doctor "LOCKSTEP_FASHION_MNIST=$tmp/damaged"
if grep -q '"check":"zlib","state":"OK"' "$tmp/out"; then
    has FAIL Fashion-MNIST 'fetch its files again'
fi

(ulimit -n 100 && doctor)
has WARN 'open files' 'ulimit -n 1024'
(mkdir "$tmp/gone" && cd "$tmp/gone" && rmdir "$tmp/gone" && doctor)
has WARN here 'the current directory is not there'
if command -v taskset >/dev/null; then
    taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')" "$lockstep" doctor --json >"$tmp/out"
    has WARN cores '1 usable'
fi
[ -z "$(find . -maxdepth 1 -name '.lockstep-doctor-*')" ] || complain 'leaves files behind'

# ---- in a terminal ---------------------------------------------------------------------------------

# in_terminal NAME=VALUE...
in_terminal()
{
    env "$@" python3 - "$lockstep" >"$tmp/out" <<'END' || complain "terminal: $*"
import pty, sys
sys.exit(0 if pty.spawn([sys.argv[1], "doctor"], lambda fd: __import__("os").read(fd, 4096),
                        lambda fd: b"") >> 8 in (0, 1) else 1)
END
}
green=$(printf '\033\\[32mOK')
in_terminal TERM=xterm LC_ALL=C.UTF-8 NO_COLOR=
grep -q "$green" "$tmp/out" || complain 'no colours in a terminal'
grep -q 'xterm, .*, colours, UTF-8' "$tmp/out" || complain "terminal: $(grep terminal "$tmp/out")"
in_terminal TERM=xterm LC_ALL=C NO_COLOR=1
! grep -q "$green" "$tmp/out" || complain 'colours with NO_COLOR'
grep -q 'no colours (NO_COLOR), no UTF-8' "$tmp/out" || complain "terminal: $(grep terminal "$tmp/out")"
in_terminal TERM=dumb NO_COLOR=
! grep -q "$green" "$tmp/out" || complain 'colours in a dumb terminal'
exit $failed
