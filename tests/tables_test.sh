#!/bin/bash
# What is made from the tables of the command line: --help, man pages and completions.
#   tables_test.sh PATH-OF-LOCKSTEP PAGE...   (the pages that are installed)
# bash is asked for completions; groff, mandoc, zsh and fish look at theirs where they are there.
set -u
lockstep=$1
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
complain() { echo "tables_test: $*" >&2; failed=1; }

# ---- every page is installed, and no other ---------------------------------------------

"$lockstep" --man --list >"$tmp/list" || complain '--man --list fails'
printf '%s\n' "$@" | sort >"$tmp/installed"
sort "$tmp/list" | diff - "$tmp/installed" >"$tmp/diff" ||
    complain "cli/meson.build lists other pages: $(cat "$tmp/diff")"
"$lockstep" --man fly >/dev/null 2>"$tmp/err"
[ $? -eq 2 ] && grep -q "no page of 'lockstep fly'" "$tmp/err" || complain "--man fly: $(cat "$tmp/err")"

# ---- pages -----------------------------------------------------------------------------

# Columns of the widest line.
width() { LC_ALL=C.UTF-8 awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }' "$1"; }

while read -r page; do
    words=${page//-/ }
    words=${words#lockstep}
    # shellcheck disable=SC2086  # words
    "$lockstep" --man $words >"$tmp/$page.1" || complain "--man$words fails"
    # shellcheck disable=SC2086
    "$lockstep" $words --help >"$tmp/$page.help" || complain "$words --help fails"
    [ "$(width "$tmp/$page.help")" -le 80 ] || complain "lockstep$words --help is wider than 80 columns"
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' 'SEE ALSO'; do
        grep -q "^\.SH $section" "$tmp/$page.1" || complain "$page.1 has no section $section"
    done
    grep -q "^${page//-/\\\\-} \\\\- [a-z]" "$tmp/$page.1" || complain "$page.1 has no name for whatis"
    [ "$page" = lockstep ] || grep -q '(1)' "$tmp/$page.1" || complain "$page.1 leads nowhere"
    if command -v groff >/dev/null; then
        # The text a reader sees: without bold and underlined.
        groff -man -ww -Tascii -P-c -P-b -P-u -P-o -rLL=78n "$tmp/$page.1" >"$tmp/$page.text" 2>"$tmp/err"
        [ ! -s "$tmp/err" ] || complain "$page.1: groff says $(cat "$tmp/err")"
        grep -q '^EXIT STATUS$' "$tmp/$page.text" || complain "$page.1 is not readable"
        [ "$(width "$tmp/$page.text")" -le 80 ] || complain "$page.1 is wider than 80 columns"
    fi
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W error "$tmp/$page.1" >"$tmp/err" || complain "$page.1: $(cat "$tmp/err")"
    fi
done <"$tmp/list"

# ---- completions --------------------------------------------------------------------------

for shell in bash zsh fish; do
    "$lockstep" --completions $shell >"$tmp/$shell" || complain "--completions $shell fails"
done
"$lockstep" --completions csh >/dev/null 2>"$tmp/err"
[ $? -eq 2 ] && grep -q 'there are bash, zsh and fish' "$tmp/err" || complain "csh: $(cat "$tmp/err")"
bash -n "$tmp/bash" || complain 'bash: syntax'
! command -v zsh >/dev/null || zsh -f -n "$tmp/zsh" || complain 'zsh: syntax'
! command -v fish >/dev/null || fish --no-config -n "$tmp/fish" || complain 'fish: syntax'

# What bash offers for the last of these words.
offered()
{
    bash -u -c '. "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _lockstep && printf "%s\n" "${COMPREPLY[@]-}"' bash "$tmp/bash" "$@" 2>"$tmp/err"
    [ ! -s "$tmp/err" ] || complain "bash completions of '$*': $(cat "$tmp/err")"
}

# offers EXPECTED WORD...: exactly these, in any order
offers()
{
    expected=$1
    shift
    got=$(offered "$@" | sort | tr '\n' ' ')
    [ "$got" = "$expected " ] || complain "'$*' offers '$got', not '$expected '"
}

# ---- every option is everywhere ---------------------------------------------------------------

"$lockstep" --man --options >"$tmp/options" || complain '--man --options fails'
[ "$(wc -l <"$tmp/options")" -gt 15 ] || complain 'few options'
while read -r line; do
    words=${line% *} option=${line##* }
    page=${words// /-}
    grep -q -E "^  $option( |\$)" "$tmp/$page.help" || complain "$words --help lacks $option"
    grep -q -F "\\fB${option//-/\\-}\\fR" "$tmp/$page.1" || complain "$page.1 lacks $option"
    # shellcheck disable=SC2086
    offered $words "$option" | grep -q -x -e "$option" || complain "bash: $words lacks $option"
    awk -v at="    '$words')" '$0 == at { on = 1 } / ;;$/ { if (on) print; on = 0 } on' "$tmp/zsh" |
        grep -q -E "'$option(=)?\\[" || complain "zsh: $words lacks $option"
    grep -q -F "is_below ${words#lockstep }' -l ${option#--} " "$tmp/fish" || complain "fish: $words lacks $option"
done <"$tmp/options"

# ---- as typed -------------------------------------------------------------------------------

offers 'bench' lockstep ben
offers '--help --version' lockstep --
offers 'allreduce' lockstep bench al
offers '--help' lockstep bench -
offers '--help --json --seconds' lockstep bench dispatch ''
offers 'reduction-to-one-device ring' lockstep bench allreduce --json --algorithm r
offers 'reduction-to-one-device ring' lockstep bench allreduce --algorithm = r
offers 'local' lockstep bench allreduce --transport =
offers '' lockstep bench allreduce --ranks ''
mkdir "$tmp/a place" && touch "$tmp/a place/file"
offers "$tmp/a place" lockstep bench input --data "$tmp/a"
offers "$tmp/a place/file" lockstep bench input --data "$tmp/a place/f"
offers '' lockstep fly away
exit $failed
