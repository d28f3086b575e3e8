#!/bin/sh
# Installs into an empty folder, builds a C and a C++ program against what is there with
# pkg-config alone, runs them and the command (a FILE.c finds its headers there), and uninstalls: nothing may
# stay behind.
#   install_test.sh SOURCE BUILD VERSION
set -eu
source=$1 build=$2 version=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "install_test: $*" >&2; exit 1; }

MESON=$(command -v meson) || fail 'meson is not in PATH'
"$MESON" install -C "$build" --no-rebuild --quiet --destdir "$tmp/root"

pc=$(find "$tmp/root" -name lockstep.pc)
[ -n "$pc" ] || fail 'no lockstep.pc'
PKG_CONFIG_SYSROOT_DIR=$tmp/root PKG_CONFIG_LIBDIR=$(dirname "$pc")
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
[ "$(pkg-config --modversion lockstep)" = "$version" ] || fail 'lockstep.pc has another version'
cflags=$(pkg-config --cflags lockstep)
libs=$(pkg-config --libs lockstep)
libdir=$(dirname "$(find "$tmp/root" -name 'liblockstep.so.0')")
[ -L "$libdir/liblockstep.so" ] || fail 'no liblockstep.so for linking'

cat >"$tmp/program.c" <<'END'
#include <lockstep.h>
#include <stdio.h>

int main(void)
{
    float data[3] = { 1, -2, 3 };
    int64_t dims[1] = { 3 };
    LS_FRAME {
        ls_tensor *y = ls_relu(ls_from(LS_F32, 1, dims, data));
        float out[3];
        if (ls_copy_out(y, out, sizeof out) != LS_OK) {
            fprintf(stderr, "%s\n", ls_error_report());
            return 1;
        }
        printf("%g %g %g\n", out[0], out[1], out[2]);
    }
    return 0;
}
END
cp "$tmp/program.c" "$tmp/program.cc"

run()
{
    out=$(LD_LIBRARY_PATH="$libdir" "$tmp/program") || fail "the $1 program fails"
    [ "$out" = '1 0 3' ] || fail "the $1 program prints '$out'"
}

# shellcheck disable=SC2086  # flags are lists
${CC:-cc} -std=c17 -Wall -Wextra -Werror $cflags "$tmp/program.c" -o "$tmp/program" $libs
run C
if command -v "${CXX:-c++}" >/dev/null; then
    # shellcheck disable=SC2086
    "${CXX:-c++}" -std=c++17 -Wall -Wextra -Werror $cflags "$tmp/program.cc" -o "$tmp/program" $libs
    run C++
fi

command=$(find "$tmp/root" -path '*/bin/lockstep')
[ "$("$command" --version)" = "lockstep $version" ] || fail 'the installed command does not run'
python3 "$source/tests/train/after_test.py" "$command" records whole elsewhere ||
    fail 'the installed command does not train a FILE.c'

man=$(find "$tmp/root" -path '*/man1/lockstep.1*')
[ -n "$man" ] || fail 'no lockstep(1)'
for page in "$(dirname "$man")"/*; do
    case $(basename "$page") in
    lockstep.1*) ;;
    lockstep-*) "$command" --man --list | grep -q -x "$(basename "$page" | sed 's/\.1.*//')" || fail "what is $page?" ;;
    *) fail "what is $page?" ;;
    esac
done
for file in bash-completion/completions/lockstep zsh/site-functions/_lockstep fish/vendor_completions.d/lockstep.fish; do
    [ -s "$(find "$tmp/root" -path "*/share/$file")" ] || fail "no $file"
done

make -s -C "$source" uninstall BUILD="$build" DESTDIR="$tmp/root"
left=$(find "$tmp/root" ! -type d)
[ -z "$left" ] || fail "uninstall leaves $left"
left=$(find "$tmp/root" -name '*lockstep*')
[ -z "$left" ] || fail "uninstall leaves $left"
