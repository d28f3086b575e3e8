"""`lockstep train` in a real terminal: what a person sees, resizes and stops. Skipped where there is no tmux."""
import shutil

from command import *

sys.path.insert(0, os.path.join(ROOT, 'tests'))
from support.terminal import Terminal  # noqa: E402

HEAD = re.compile(r'cnn: 347,?146 parameters, 2 replicas on \d devices?, batch 32, \S+ \(\d+ samples\)')
ENDED = re.compile(r'epoch +(\d+)/\d+(  [\d:.]+s?)?(  loss [\d.e-]+)?( accuracy [\d.]+)?(  test( loss [\d.e-]+)? accuracy [\d.]+)?'
                   r'(  [\d.]+k?(/s| samples/s))?(  input \d+%  reduce \d+%)?')
LIVE = re.compile(r'(epoch +(?P<epoch>\d+)/\d+  )?(?P<test>test )? *(?P<step>\d+)/(?P<steps>\d+)(?P<bar> [━╸─]+)?(  loss [\d.e-]+)?'
                  r'( accuracy [\d.]+)?(  [\d.]+k?(/s| samples/s))?(  eta [\d:]+)?( +all [\d:]+)?(  input \d+%  reduce \d+%)?')
PROMPT = 'ready> '
ENDLESS = '--epochs 90000'


def command(*words):
    return ' '.join([f"'{LOCKSTEP}' train --batch 16", f"--data '{DATA}'", *words])


class Screen(Terminal):
    """Of a shell that runs the command and then waits for more."""

    def __init__(self, *words, variables=(), **how):
        super().__init__(os.getcwd(), command(*words), variables=variables,
                         after=f"PS1='{PROMPT}' exec sh -i", **how)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def type(self, *keys):
        self.tmux('send-keys', *keys)

    def prompt(self):
        """Waits until the shell is there: on a line of its own, after all else."""
        return self.wait('the prompt', lambda x: x[-1] == PROMPT.strip())


def live(lines):
    return LIVE.fullmatch(lines[-1])


def clean(lines, columns):
    """The head, epochs in order, and one line that changes and fits."""
    rest = [line for line in lines if not HEAD.fullmatch(line) and not line.startswith('going on after step')]
    ended = [ENDED.fullmatch(line) for line in rest[:-1]]
    if not rest or not all(ended):
        return False
    epochs = [int(m[1]) for m in ended]
    if epochs != list(range(epochs[0], epochs[0] + len(epochs)) if epochs else []):
        return False
    return bool(ENDED.fullmatch(rest[-1]) or (LIVE.fullmatch(rest[-1]) and len(rest[-1]) < columns))


def moves():
    """The bar has all that it should, and moves; nothing else is on the screen."""
    with Screen(ENDLESS, columns=120, rows=40) as t:
        for what in 'loss ', ' accuracy ', '/s', 'eta ', 'input ', 'reduce ', '━', 'epoch ':
            t.wait(f'a bar with {what!r}', lambda x, w=what: live(x) and w in x[-1])
        seen = set()
        for _ in range(3):
            lines = t.wait('another step', lambda x: live(x) and clean(x, 120) and x[-1] not in seen)
            seen.add(lines[-1])
        check(HEAD.fullmatch(t.lines()[0]), 'no head', *t.lines())
        lines = t.wait('the end of an epoch', lambda x: len(x) > 2 and ENDED.fullmatch(x[1]))
        for what in 'test loss', 'accuracy', 'samples/s':
            check(what in lines[1], f'no {what!r}', *lines)


def resized():
    """Narrow, wide, and back: one bar, of the new size, and no garbage."""
    with Screen(ENDLESS, columns=100, rows=14, full=20) as t:
        t.wait('an epoch', lambda x: len(x) > 2)
        for columns in 60, 130, 40, 100:
            t.resize(columns)
            t.wait(f'a clean screen of {columns} columns', lambda x, c=columns: live(x) and clean(x, c))


def stopped():
    """Ctrl-C: the message, then a clean prompt; then --resume."""
    with Screen(ENDLESS, '--checkpoint stopped', columns=120, rows=50) as t:
        t.wait('a bar', lambda x: live(x) and len(x) > 2)
        t.type('C-c')
        lines = t.prompt()
        said = re.fullmatch(r'lockstep train: stopped by Ctrl-C after step (\d+); saved (\S+); --resume goes on from there', lines[-2])
        check(said, 'no message before the prompt', *lines)
        check(t.asked('cursor_x') == str(len(PROMPT)) and t.asked('cursor_flag') == '1' and t.asked('wrap_flag') == '1',
              'a bad cursor', *lines)
        step = int(said[1])
        check(os.path.exists(said[2]), 'no such file', said[2])
        # Of the lines before, the terminal itself threw away what it had not shown when Ctrl-C was typed.
        check(HEAD.fullmatch(lines[0]) and ENDED.fullmatch(lines[1]), 'what was there is gone', *lines)
        resumed(t, step)
        t.type('echo $?', 'Enter')
        t.wait('status 130', lambda x: x[-1] == PROMPT.strip() and x[-2] == '130')


def resumed(t, step):
    """Shows the right epoch and step from the first line on."""
    t.type('clear', 'Enter')
    t.wait('an empty screen', lambda x: x == [PROMPT.strip()])
    t.tmux('clear-history')
    t.type(command(ENDLESS, '--checkpoint stopped --resume'), 'Enter')
    lines = t.wait('a line', lambda x: any(line.startswith('going on after') for line in x))
    at = next(i for i, line in enumerate(lines) if line.startswith('going on after'))
    check(re.match(rf'going on after step {step}\b', lines[at]), 'not this step', *lines)
    lines = t.wait('a bar', lambda x: live(x) or any(ENDED.fullmatch(line) for line in x))
    first = next(m for m in map(lambda x: ENDED.fullmatch(x) or LIVE.fullmatch(x), lines[at + 1:]) if m)
    groups = first.groupdict()
    epoch = int(groups['epoch']) if 'epoch' in groups else int(first[1])
    tested = step % 10 == 0 and epoch == step // 10  # the test that was broken off
    check(tested or epoch == step // 10 + 1, f'not in the epoch of step {step}', *lines)
    check('epoch' not in groups or groups['test'] or int(groups['step']) >= (10 if tested else step % 10),
          f'not at step {step}', *lines)
    t.type('C-c')
    t.prompt()


CRASHES = """
#include <lockstep/train.h>
#include <stdlib.h>
static ls_layer *out;
static void build(ls_model *m, void *user)
{
    (void)user;
    out = ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
}
static ls_tensor *forward(void *user, ls_tensor *x, bool training)
{
    (void)user;
    const long long rows = ls_shape(x)[0];
    if (rows > 0 && rows < 16)
        abort();
    return ls_forward(out, ls_flatten_rows(x), training);
}
ls_model *lockstep_model(void)
{
    return ls_model_new(LS_MODEL(.name = "crashes", .input = "f32[28,28,1]", .net_bytes = 8, .build = build, .forward = forward));
}
"""


def crashes():
    """A model that crashes under the bar: the line that says so is not behind it."""
    with open('crashes.c', 'w') as f:
        f.write(CRASHES)
    with Screen('crashes.c', columns=100) as t:
        lines = t.prompt()
        check(lines[-2] == 'lockstep train: the model crashes.c crashed (SIGABRT) in step 10', 'not so', *lines)
        check(LIVE.fullmatch(lines[-3]), 'no bar before it', *lines)


def colours():
    """NO_COLOR, as others understand it."""
    for variable, coloured in ('NO_COLOR=1', False), ('NO_COLOR=', True):
        with Screen('--epochs 3', variables=[variable], columns=120) as t:
            t.prompt()
            text = '\n'.join(t.lines('-e'))
            check(('\033[3' in text) == coloured, f'colours with {variable}', text)
            check('weights ' in text, 'no end', text)


def json_in_a_terminal():
    """--json is JSON there, too: no bar, no colours."""
    with Screen('--json --steps 5', columns=2000, rows=20) as t:
        lines = t.prompt()
        check([parse(line)['event'] for line in lines[:-1]] == ['start', 'step', 'step', 'end'], 'not so', *lines)


if not shutil.which('tmux'):
    print('skipped: there is no tmux')
    sys.exit(SKIPPED)
main([moves, resized, stopped, crashes, colours, json_in_a_terminal])
