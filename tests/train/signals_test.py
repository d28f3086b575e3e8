"""Ctrl-C and SIGTERM: they save, leave with 130, and nothing is lost. What is waited for is an event, not a time."""
import signal

from command import *

ENDLESS = ['--epochs', 1000000]


def stopped(folder, number, fine, *words):
    """A run without an end, stopped by a signal after an event; its last step, which was saved."""
    with Going(*MODEL, *SMALL, *ENDLESS, '--checkpoint', folder, *words) as going:
        going.until(fine)
        going.send(number)
        done = going.end(130)
    check(not any(e['event'] in ('end', 'error') for e in done.events), 'an end, or an error', done)
    last = done.events[-1]
    check(last['event'] == 'interrupted', 'the last event does not say so', done)
    lines = [line for line in done.err.splitlines() if not re.match(r'lockstep train: \d+ records', line)]
    check(len(lines) == 1 and lines[0].startswith('lockstep train: ') and str(last['steps']) in lines[0], 'no line that says so', done)
    newest = checkpoints(folder)[-1]
    check(newest in lines[0] and '--resume' in lines[0], 'it does not say what to do', done)
    check(int(newest[-len('000000000.safetensors'):-len('.safetensors')]) == last['steps'], 'not saved at once', done)
    return last['steps']


def goes_on(folder, step, *words):
    """With the bits of a run that was never stopped."""
    steps = ['--steps', step + 13]
    done = train(*ENDLESS, *steps, '--checkpoint', folder, '--resume', *words)
    want = train(*ENDLESS, *steps, *words)
    check(done.shas == want.shas, f'other bits after a stop at step {step}', done, want)


def ctrl_c():
    """SIGINT in the middle."""
    goes_on('int', stopped('int', signal.SIGINT, lambda e: e['event'] == 'epoch'))


def terminated():
    """SIGTERM in the middle, with three replicas and a log."""
    more = ['--replicas', 3, '--optimizer', 'momentum']
    goes_on('term', stopped('term', signal.SIGTERM, lambda e: e.get('step') == 1, *more, '--log', 'term-log'), *more)


def again_and_again():
    """Stopped, resumed, stopped, resumed."""
    step = stopped('again', signal.SIGINT, lambda e: e['event'] == 'epoch')
    for _ in range(3):
        more = stopped('again', signal.SIGINT, lambda e: e['event'] == 'epoch', '--resume')
        check(more > step, f'no way from step {step}')
        step = more
    goes_on('again', step)


def in_a_test():
    """SIGINT while it tests: one step is an epoch here, and the test of it is long."""
    if KIND != 'npz':
        return
    write_npz('long-test.npz', train=32, test=12000)
    data = ['--data', 'long-test.npz']
    step = stopped('test', signal.SIGINT, lambda e: e.get('step') == 1, *data)
    check(step >= 1, 'nothing was done')
    done = train(*data, '--epochs', step + 1, '--checkpoint', 'test', '--resume')
    want = train(*data, '--epochs', step + 1)
    check(done.shas == want.shas, 'other bits', done, want)
    check(done.event('end')['test_loss'] == want.event('end')['test_loss'], 'another test', done, want)


def not_saved():
    """Without --checkpoint nothing can be saved, and it says so."""
    with Going(*SMALL, *ENDLESS) as going:
        going.until(lambda e: e['event'] == 'epoch')
        going.send(signal.SIGINT)
        done = going.end(130)
    check(len(done.err.splitlines()) == 1 and '--checkpoint' in done.err, 'it does not say what was lost', done)


# A step that never ends, which only a second signal gets out of: the first with a short batch, when the
# function is traced for its shape.
STUCK = """
#include <lockstep/train.h>
#include <stdio.h>
#include <unistd.h>
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
    if (STUCK && rows > 0 && rows < 16) {
        fclose(fopen("stuck.now", "w"));
        for (;;)
            pause();
    }
    return ls_forward(out, ls_flatten_rows(x), training);
}
ls_model *lockstep_model(void)
{
    return ls_model_new(LS_MODEL(.name = "stuck", .input = "f32[28,28,1]", .net_bytes = 8, .build = build,
                                 .forward = forward));
}
"""


def twice():
    """Two SIGINTs end a run that is stuck in a step, at once; the last checkpoint is whole."""
    for name, stuck in ('stuck.c', '1'), ('free.c', '0'):
        with open(name, 'w') as f:
            f.write(STUCK.replace('STUCK', stuck))
    with Going('stuck.c', *SMALL, *ENDLESS, '--checkpoint', 'twice', '--checkpoint-every', 2) as going:
        until = time.monotonic() + PATIENCE
        while not os.path.exists('stuck.now'):
            check(going.process.poll() is None and time.monotonic() < until, 'it never came to the long step', going.words)
            time.sleep(0.005)
        going.send(signal.SIGINT)
        check(going.process.poll() is None, 'one signal ended it')
        going.send(signal.SIGINT)
        done = going.end(130)
    check(len(done.err.splitlines()) == 1 and done.err.startswith('lockstep train: '), 'no line that says so', done)
    check([os.path.basename(p) for p in checkpoints('twice')][-1] == 'step-000000008.safetensors', 'not the last checkpoint')
    newest = checkpoints('twice')[-1]
    lockstep('evaluate', newest, '--model', 'free.c', '--data', DATA, '--batch', 16)


def twice_at_any_time():
    """Two signals at once, wherever the run is: 130, and the last checkpoint is whole."""
    for i in range(6):
        with Going(*SMALL, *ENDLESS, '--checkpoint', 'any', '--checkpoint-every', 1, *['--resume'] * (i > 0)) as going:
            going.until(lambda e: e['event'] == 'epoch')
            going.process.send_signal(signal.SIGINT)
            going.process.send_signal(signal.SIGTERM)
            going.end(130)
        lockstep('evaluate', checkpoints('any')[-1], '--data', DATA, '--batch', 16)


def killed():
    """Not even SIGKILL harms what was saved; what it left half-written does not stay for ever."""
    for i in range(4):
        with Going(*SMALL, *ENDLESS, '--checkpoint', 'killed', '--checkpoint-every', 1, *['--resume'] * (i > 0)) as going:
            going.until(lambda e: e['event'] == 'epoch')
            going.process.kill()
            going.end(-signal.SIGKILL)
        names = [n for n in os.listdir('killed') if n.startswith('step-') and n.endswith('.safetensors')]
        lockstep('evaluate', os.path.join('killed', max(names)), '--data', DATA, '--batch', 16)
    goes_on('killed', int(max(names)[len('step-'):-len('.safetensors')]))
    checkpoints('killed')  # nothing strange is left


main([ctrl_c, terminated, again_and_again, in_a_test, not_saved, twice, twice_at_any_time, killed], [ctrl_c])
