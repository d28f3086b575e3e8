"""The progress bar in a real terminal, tmux: bar_test.py PATH-OF-BAR_PLAY

What is on the screen is read while the bar runs, while the window changes its size, and after it
has ended. Nothing is timed: a state is waited for, and fails the test when it does not come.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from support.terminal import PATIENCE, Terminal

LIVE = re.compile(r'(epoch +\d+/\d+  )?(test )? *\d+/(\d+|\?)( [━╸─]+)?(  loss \d\.\d{4})?'
                  r'( accuracy \d\.\d{4})?(  [\d.]+k?(/s| samples/s))?(  eta \d+:\d\d)?( {1,2}all \d+:\d\d)?'
                  r'(  input \d+%  reduce \d+%)?')
ENDED = re.compile(r'epoch +\d+/\d+(  [\d.]+s)?(  loss \d\.\d{4})?( accuracy \d\.\d{4})?'
                   r'(  test( loss 0\.3900)? accuracy 0\.8600)?(  [\d.]+k?(/s| samples/s))?'
                   r'(  input 1%  reduce 6%)?')
LOGGED = re.compile(r'warning at step \d+')


def check(truth, what, lines=()):
    if not truth:
        sys.exit(what + ''.join('\n' + line for line in lines))


def clean(lines, columns):
    """Lines that stay, in order, and at most one that changes, the last, which fits."""
    if any(not ENDED.fullmatch(line) and not LOGGED.fullmatch(line) for line in lines[:-1]):
        return False
    last = lines[-1]
    if ENDED.fullmatch(last) or LOGGED.fullmatch(last):
        return True
    return bool(LIVE.fullmatch(last)) and len(last) < columns


def live(lines):
    return bool(LIVE.fullmatch(lines[-1]))


def shown_and_gone(folder, play):
    """From beginning to end in one size; the cursor and the wrapping are as they were."""
    t = Terminal(folder, f'{play} 2 60 30 10 0 wait')
    try:
        t.wait('the bar', lambda x: clean(x, 80) and live(x) and '━' in x[-1] and 'loss' in x[-1])
        t.wait('a test', lambda x: 'test' in x[-1] and live(x) and clean(x, 80))
        while len(lines := t.lines()) < 2 or live(lines):
            check(clean(lines, 80), 'garbled:', lines)
            check(t.asked('cursor_x') in ('0', ''), 'the cursor is not at the beginning', lines)
        check(clean(lines, 80) and len(lines) == 2, 'not the two lines that stay:', lines)
        t.tmux('send-keys', 'Enter')
        t.wait('the end', lambda x: t.asked('cursor_y') == '3')
        check(t.asked('cursor_flag') == '1', 'the cursor is hidden')
        check(t.asked('wrap_flag') == '1', 'lines do not wrap any more')
        lines = t.lines()
        check(clean(lines, 80) and len(lines) == 2, 'not the two lines that stay:', lines)
    finally:
        t.close()


def resized(folder, play):
    """Narrow, wide, very narrow, very wide: one bar, of the new size, and nothing left over.

    On a full screen: of one that is not, tmux pushes lines into its history when others wrap, where
    nobody can clear them.
    """
    t = Terminal(folder, f'{play} 1000 40 10 10', columns=100, rows=12, full=20)
    try:
        t.wait('an epoch', lambda x: len(x) >= 2)
        for columns in 50, 120, 31, 200, 64, 43, 80:
            t.resize(columns)
            lines = t.wait(f'a clean screen of {columns} columns',
                           lambda x, c=columns: live(x) and clean(x, c))
            check(t.asked('window_width') == str(columns), 'tmux did not resize')
            if columns >= 80:
                t.wait('a wide bar', lambda x, c=columns: clean(x, c) and len(x[-1]) > c - 25 - c // 4)
    finally:
        t.close()


def others_print(folder, play):
    t = Terminal(folder, f'{play} 1 60 10 10 0 log wait', rows=30)
    try:
        t.wait('a warning', lambda x: clean(x, 80) and live(x) and len(x) > 2)
        lines = t.wait('the end', lambda x: ENDED.fullmatch(x[-1]))
        check(clean(lines, 80), 'garbled:', lines)
        logged = [line for line in lines if LOGGED.fullmatch(line)]
        check(logged == [f'warning at step {i}' for i in range(0, 61, 10)], 'lost:', lines)
    finally:
        t.close()


def killed(folder, play):
    """The line stays, and what comes next begins below it."""
    t = Terminal(folder, f'{play} 2 100 10 10 0 kill')
    try:
        t.wait('the end', lambda x: t.asked('cursor_y') == '1')
        lines = t.lines()
        check(len(lines) == 1 and live(lines), 'not one line:', lines)
        check(t.asked('cursor_x') == '0' and t.asked('cursor_flag') == '1', 'a bad cursor')
    finally:
        t.close()


def colours(folder, play):
    for variable, coloured, bar in (('NO_COLOR=', True, '━'), ('NO_COLOR=1', False, '━'),
                                    ('LC_ALL=C', True, '='), ('TERM=dumb', False, None)):
        t = Terminal(folder, f'{play} 2 60 10 10 0 wait', variables=[variable])
        try:
            if bar:
                t.wait(f'the bar with {variable}', lambda x: bar in x[-1] and 'loss' in x[-1])
                check(('\033[3' in '\n'.join(t.lines('-e'))) == coloured, f'colour with {variable}')
            else:
                lines = t.wait('the end', lambda x: len(x) == 5)
                check(all(line.startswith('epoch ') for line in lines), 'garbled:', lines)
        finally:
            t.close()


def no_terminal(play):
    """A log has no control characters; a resumed run begins where it was."""
    done = subprocess.run([play, '2', '50', '10', '1', '30'], stderr=subprocess.PIPE, check=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE,
                          env={**os.environ, 'CLICOLOR_FORCE': '1', 'LANG': 'C.UTF-8'})
    lines = done.stderr.decode('ascii').split('\n')
    check(not re.search(rb'[\x00-\x09\x0b-\x1f\x7f]', done.stderr), 'control characters', lines)
    check(lines[0].startswith('epoch 1/2  step 31/50  loss ') and lines[-1] == '', 'not so:', lines)
    check(sum('samples/s' in line for line in lines) == 2, 'not two epochs:', lines)


def main():
    play = os.path.abspath(sys.argv[1])
    no_terminal(play)
    if not shutil.which('tmux'):
        print('skipped: there is no tmux')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        shown_and_gone(folder, play)
        resized(folder, play)
        others_print(folder, play)
        killed(folder, play)
        colours(folder, play)


main()
