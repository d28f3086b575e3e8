"""A real terminal, tmux, whose screen a test can read.

    with tempfile.TemporaryDirectory() as folder:     # where its socket is
        t = Terminal(folder, 'a shell command')
        try:
            t.wait('the end', lambda lines: lines[-1] == 'done')
        finally:
            t.close()

Nothing is timed: a state is waited for, and fails the test when it does not come.
"""
import os
import subprocess
import sys
import time

PATIENCE = 30  # seconds
BEFORE = 'before'  # lines that fill a screen before the command begins


class Terminal:
    """One window in a server of its own."""

    count = 0

    def __init__(self, folder, command, columns=80, rows=24, variables=(), full=0, after='exec cat'):
        Terminal.count += 1  # a server that was killed may still be leaving
        self.socket = f'lockstep-{os.getpid()}-{Terminal.count}'
        self.env = {k: v for k, v in os.environ.items() if not k.startswith('TMUX')}
        self.env['TMUX_TMPDIR'] = folder
        words = ['env', '-u', 'NO_COLOR', '-u', 'LC_ALL', '-u', 'LC_CTYPE', '-u', 'COLUMNS', 'LANG=C.UTF-8', *variables]
        self.tmux('-u', '-f', os.devnull, 'new-session', '-d', '-x', str(columns), '-y', str(rows),
                  f'yes {BEFORE} | head -n {full}; ' + ' '.join(words) + f' {command}; {after}')
        self.tmux('set-option', '-g', 'window-size', 'manual')

    def tmux(self, *words):
        return subprocess.run(['tmux', '-L', self.socket, *words], env=self.env, check=True,
                              stdout=subprocess.PIPE, text=True, timeout=PATIENCE).stdout

    def resize(self, columns):
        self.tmux('resize-window', '-x', str(columns))

    def lines(self, *how):
        """What is on the screen and above, without empty ones at the end; wrapped ones joined."""
        text = self.tmux('capture-pane', '-p', '-J', '-S', '-', *how).rstrip()
        lines = [line.rstrip() for line in text.split('\n')]
        while len(lines) > 1 and lines[0] == BEFORE:
            lines.pop(0)
        return lines

    def asked(self, what):
        return self.tmux('display-message', '-p', '#{' + what + '}').strip()

    def wait(self, what, fine):
        """Until `fine` of the lines."""
        until = time.monotonic() + PATIENCE
        while True:
            lines = self.lines()
            if fine(lines):
                return lines
            if time.monotonic() > until:
                raise AssertionError(f'{what} never came; the screen:\n' + '\n'.join(lines[-40:]))
            time.sleep(0.02)

    def close(self):
        self.tmux('kill-server')
