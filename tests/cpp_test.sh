#!/bin/sh
# Builds the C++ programs of tests/ against the public headers and the library, and runs them, with
# every compiler that is there.
#   cpp_test.sh SOURCE LIBRARY
set -eu
source=$1 library=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "cpp_test: $*" >&2; exit 1; }

any=
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    any=yes
    for program in "$source"/tests/data/*.cc; do
        $compiler -std=c++17 -pedantic -Wall -Wextra -Wshadow -Werror -I"$source/include" "$program" -o "$tmp/program" \
            "$library" -Wl,-rpath,"$(dirname "$library")" || fail "$program does not compile with $compiler"
        "$tmp/program" || fail "$program fails with $compiler"
    done
done
[ -n "$any" ] || echo 'cpp_test: no C++ compiler is there'
