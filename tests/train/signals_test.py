"""Ctrl-C, SIGTERM and other signals: they save, leave with 130, and nothing is lost. What is waited for is an event, not
a time."""
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
    path = checkpoints(folder)[-1]
    check(path in lines[0] and '--resume' in lines[0], 'it does not say what to do', done)
    check(step_of(path) == last['steps'], 'not saved at once', done)
    return last['steps']


def goes_on(folder, step, *words):
    """With the bits of a run that was never stopped."""
    steps = ['--steps', step + 13]
    done = train(*ENDLESS, *steps, '--checkpoint', folder, '--resume', *words)
    want = train(*ENDLESS, *steps, *words)
    check(done.shas == want.shas, f'other bits after a stop at step {step}', done, want)


def newest(folder):
    """Its newest checkpoint; beside it there may be one that is half-written, under another name."""
    return os.path.join(folder, max(n for n in os.listdir(folder) if re.fullmatch(r'step-\d+\.safetensors', n)))


def step_of(path):
    return int(path[-len('000000000.safetensors'):-len('.safetensors')])


def ctrl_c():
    """SIGINT in the middle."""
    goes_on('int', stopped('int', signal.SIGINT, lambda e: e['event'] == 'epoch'))


def terminated():
    """SIGTERM in the middle, with three replicas and a log."""
    more = ['--replicas', 3, '--optimizer', 'momentum']
    goes_on('term', stopped('term', signal.SIGTERM, lambda e: e.get('step') == 1, *more, '--log', 'term-log'), *more)


def hung_up():
    """SIGHUP: the terminal was closed."""
    goes_on('hup', stopped('hup', signal.SIGHUP, lambda e: e['event'] == 'epoch'))


def nobody_reads():
    """What read its events has gone: it saves and leaves, and does not train for nobody."""
    with Going(*MODEL, *SMALL, *ENDLESS, '--checkpoint', 'pipe') as going:
        going.until(lambda e: e['event'] == 'epoch')
        going.process.stdout.close()
        status = going.process.wait(PATIENCE)
        check(status == 130, f'exit status {status}', going.process.stderr.read().decode())
    goes_on('pipe', step_of(checkpoints('pipe')[-1]))


def ignore_hang_ups():
    heed_signals()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def nohup():
    """A signal that was ignored when it began stays ignored."""
    with Going(*MODEL, *SMALL, *ENDLESS, '--checkpoint', 'nohup', preexec_fn=ignore_hang_ups) as going:
        going.until(lambda e: e['event'] == 'epoch')
        going.process.send_signal(signal.SIGHUP)
        going.until(lambda e: e['event'] == 'epoch')
        going.send(signal.SIGINT)
        done = going.end(130)
    check('Ctrl-C' in done.err and 'SIGHUP' not in done.err, 'ended by another signal', done)


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


# A test that ends when it may.
WAITS = STUCK.replace('STUCK && rows > 0 && rows < 16', 'rows > 0 && !training').replace('pause()', 'if (!access("go.now", F_OK)) break')


def write_models():
    for name, text in ('stuck.c', STUCK.replace('STUCK', '1')), ('free.c', STUCK.replace('STUCK', '0')), ('waits.c', WAITS):
        with open(name, 'w') as f:
            f.write(text)


def stuck(*words, **how):
    """A command whose model is stuck."""
    write_models()
    if os.path.exists('stuck.now'):
        os.remove('stuck.now')
    going = Going(*words, **how)
    going.until_there('stuck.now')
    return going


def rests(going):
    """Whether it is there when it has done what it does now: it sleeps, or is gone."""
    until = time.monotonic() + PATIENCE
    while True:
        with open(f'/proc/{going.process.pid}/stat') as f:
            state = f.read().rpartition(')')[2].split()[0]
        if state in 'SZ':
            return state == 'S'
        check(time.monotonic() < until, f'it neither sleeps nor ends: {state}')
        time.sleep(0.001)


def twice():
    """Two SIGINTs end a run that is stuck in a step, at once; the last checkpoint is whole."""
    with stuck('stuck.c', *SMALL, *ENDLESS, '--checkpoint', 'twice', '--checkpoint-every', 2) as going:
        going.send(signal.SIGINT)
        check(going.process.poll() is None, 'one signal ended it')
        going.send(signal.SIGINT)
        done = going.end(130)
    check(len(done.err.splitlines()) == 1 and done.err.startswith('lockstep train: '), 'no line that says so', done)
    check([os.path.basename(p) for p in checkpoints('twice')][-1] == 'step-000000008.safetensors', 'not the last checkpoint')
    lockstep('evaluate', newest('twice'), '--model', 'free.c', '--data', DATA, '--batch', 16)


def patient():
    """No other signal ends it at once, however often: a terminal that closes sends SIGHUP twice, timeout(1) SIGTERM."""
    with stuck('stuck.c', *SMALL, *ENDLESS) as going:
        for number in signal.SIGTERM, signal.SIGTERM, signal.SIGHUP, signal.SIGHUP:
            going.send(number)
            check(rests(going), f'{number.name} ended it', going.words)
        going.send(signal.SIGINT)
        done = going.end(130)
    check(done.err.startswith('lockstep train: ended at once by Ctrl-C'), 'no line that says so', done)


def others():
    """Commands that have nothing to save end at once, with 130."""
    write_models()
    lockstep('train', 'free.c', *SMALL, '--steps', 1, '--checkpoint', 'others')
    for number in signal.SIGTERM, signal.SIGINT:
        with stuck('others', '--model', 'stuck.c', '--data', DATA, '--batch', 16, command='evaluate') as going:
            going.send(number)
            going.end(130)


def in_the_last_test():
    """A signal in the test of a run that has done its steps: it was not told how good it is, but is saved."""
    with stuck('waits.c', *SMALL, '--steps', 3, '--checkpoint', 'last') as going:
        going.send(signal.SIGTERM)
        open('go.now', 'w').close()
        done = going.end(130)
    check(done.events[-1]['event'] == 'interrupted' and done.events[-1]['steps'] == 3, 'it does not say so', done)
    check(step_of(checkpoints('last')[-1]) == 3, 'not saved')


def twice_at_any_time():
    """Two signals at once, wherever the run is: 130, and the last checkpoint is whole."""
    for i in range(6):
        with Going(*SMALL, *ENDLESS, '--checkpoint', 'any', '--checkpoint-every', 1, *['--resume'] * (i > 0)) as going:
            going.until(lambda e: e['event'] == 'epoch')
            going.process.send_signal(signal.SIGINT)
            going.process.send_signal(signal.SIGTERM)
            going.end(130)
        lockstep('evaluate', newest('any'), '--data', DATA, '--batch', 16)
    train(*ENDLESS, '--steps', step_of(newest('any')) + 1, '--checkpoint', 'any', '--resume')
    checkpoints('any')  # what was half-written is gone


def killed():
    """Not even SIGKILL harms what was saved; what it left half-written does not stay for ever."""
    for i in range(4):
        with Going(*SMALL, *ENDLESS, '--checkpoint', 'killed', '--checkpoint-every', 1, *['--resume'] * (i > 0)) as going:
            going.until(lambda e: e['event'] == 'epoch')
            going.process.kill()
            going.end(-signal.SIGKILL)
        lockstep('evaluate', newest('killed'), '--data', DATA, '--batch', 16)
    goes_on('killed', step_of(newest('killed')))
    checkpoints('killed')  # what was half-written is gone


main([ctrl_c, terminated, hung_up, nobody_reads, nohup, again_and_again, in_a_test, not_saved, twice, patient, others,
      in_the_last_test, twice_at_any_time, killed], [ctrl_c])
