"""What `lockstep train` prints: the events of --json, and plain lines without it."""
import math
import re

from command import *

SHA = re.compile('[0-9a-f]{64}')
NUMBER = (int, float)


def number(event, *names):
    for name in names:
        value = event.get(name)
        check(type(value) in NUMBER and math.isfinite(value), f'{name} is not a number', event)


def check_start(start, model, parameters, replicas, devices, batch):
    want = {'event': 'start', 'model': model, 'parameters': parameters, 'replicas': replicas, 'devices': devices,
            'workers': 1, 'pipelines': 1, 'threads': 1, 'global_batch': batch, 'same_bits': True}
    got = {name: start.get(name) for name in want}
    check(got == want, f'not {want}', start)
    check(isinstance(start['profile'], str) and start['profile'], 'no profile', start)


def check_end(end, steps):
    number(end, 'loss', 'test_accuracy', 'seconds', 'peak_rss_bytes')
    check(end['samples_per_second'] is None or end['samples_per_second'] > 0, 'samples_per_second', end)
    check(end['steps'] == steps and type(end['steps']) is int, f'not {steps} steps', end)
    check(type(end['peak_rss_bytes']) is int and end['peak_rss_bytes'] > 1 << 20, 'peak_rss_bytes', end)
    check(SHA.fullmatch(end['weights_sha256']) and SHA.fullmatch(end['state_sha256']), 'no sha256', end)


def check_steps(done, steps):
    """The first, every 100th, the last."""
    events = [e for e in done.events if e['event'] == 'step']
    want = sorted({1, steps, *range(100, steps + 1, 100)})
    check([e['step'] for e in events] == want, f'not the steps {want}', done)
    for e in events:
        number(e, 'step', 'loss', 'samples_per_second')
        check(e['samples_per_second'] > 0, 'no speed', e)


def two_epochs():
    """Start, steps, epochs and end, in this order, with their fields."""
    done = train('--epochs', 2, '--devices', '/cpu:0,/cpu:1')
    check(KIND == 'records' or done.err == '', 'something on stderr', done)
    kinds = [e['event'] for e in done.events]
    check(kinds == ['start', 'step', 'epoch', 'step', 'epoch', 'end'], f'not so: {kinds}', done)
    check_start(done.events[0], *MODEL or ['cnn'], PARAMETERS, 2, ['/cpu:0', '/cpu:1'], 32)
    check_steps(done, 20)
    epochs = [e for e in done.events if e['event'] == 'epoch']
    for i, e in enumerate(epochs):
        check(e['epoch'] == i + 1, 'not in order', e)
        number(e, 'loss', 'accuracy', 'test_loss', 'test_accuracy')
        check(0 <= e['accuracy'] <= 1 and 0 <= e['test_accuracy'] <= 1, 'no accuracy', e)
    end = done.event('end')
    check_end(end, 20)
    check(end['loss'] == epochs[1]['loss'] and end['test_accuracy'] == epochs[1]['test_accuracy'],
          'the end is not of the last epoch', done)


def hundredth_steps():
    """250 steps: 1, 100, 200, 250; a speed at the end."""
    done = train('--epochs', 1000, '--steps', 250, '--replicas', 1, '--batch', 2)
    check_start(done.events[0], 'cnn', 347146, 1, ['/cpu:0'], 2)
    check_steps(done, 250)
    end = done.event('end')
    check_end(end, 250)
    number(end, 'samples_per_second')
    check([e['epoch'] for e in done.events if e['event'] == 'epoch'] == [1], 'not one epoch of 150 steps', done)


def steps_end_at_an_epoch():
    """--steps at the end of an epoch, and beyond --epochs."""
    done = train('--epochs', 2, '--steps', 10)
    check_steps(done, 10)
    check([e['event'] for e in done.events] == ['start', 'step', 'step', 'epoch', 'end'], 'not so', done)
    check(train('--epochs', 1, '--steps', 1000).shas == done.shas, 'an epoch of 10 steps is not 10 steps')


def last_of_unknown():
    """Of data that does not tell how many batches it has, the last step is told, too, and in the same order."""
    write_records('l-train.tfrecord', SAMPLES, 1)
    write_records('l-test.tfrecord', TESTED, 2)
    done = lockstep('train', '--data', 'l-*.tfrecord', '--batch', 16, '--json')
    check_steps(done, 10)
    check([e['event'] for e in done.events] == ['start', 'step', 'step', 'epoch', 'end'], 'not so', done)


def short_last_batch():
    """A step's loss is a mean over its samples, in the short last batch of an epoch, too."""
    # A model that hardly learns: all losses are near ln 10.
    done = train('--lr', '1e-9', '--optimizer', 'sgd')
    losses = [e['loss'] for e in done.events if e['event'] == 'step']
    check(all(abs(loss - math.log(10)) < 0.4 for loss in losses), f'losses {losses} are not near ln 10', done)


def it_learns():
    """The loss falls, the accuracy climbs."""
    first, *_, last = [e for e in train('--epochs', 8, '--lr', '0.002').events if e['event'] == 'epoch']
    check(last['loss'] < first['loss'] and last['test_loss'] < first['test_loss'], 'it does not learn', first, last)
    check(last['test_accuracy'] > 0.2, 'no better than chance', last)


def plain_lines():
    """Without --json no JSON; without a terminal no control characters, whatever the variables say."""
    for env in {}, {'CLICOLOR_FORCE': '1', 'TERM': 'xterm-256color'}:
        done = lockstep('train', *SMALL, '--epochs', 2, env=env)
        text = done.out + done.err
        check(not re.search(r'[\x00-\x09\x0b-\x1f\x7f]', text), 'control characters', done)
        check('{' not in text, 'JSON without --json', done)
        for what in 'cnn', '347146', 'epoch 1/2', 'epoch 2/2', 'loss', 'accuracy', 'samples/s':
            check(what in text, f'no {what!r}', done)
        check(len(text.splitlines()) < 20, 'too many lines', done)
        sha = train('--epochs', 2).shas[0]
        check(sha in text, 'not the weights_sha256 of --json', done)


def no_strange_numbers():
    """A person is never shown a number that is none, however short the run."""
    for steps in 1, 11:
        done = lockstep('train', *SMALL, '--epochs', 2, '--steps', steps)
        check(not re.search(r'\b(nan|inf)\b', done.out + done.err), 'nan', done)


def devices_by_default():
    """V = 2 without options; as many as --devices names; the number of devices is at most V."""
    check(train('--steps', 1).events[0]['replicas'] == 2, 'V is not 2')
    start = train('--steps', 1, '--devices', '/cpu:0,/cpu:1,/cpu:2').events[0]
    check(start['replicas'] == 3 and start['devices'] == ['/cpu:0', '/cpu:1', '/cpu:2'], 'V is not 3', start)
    start = train('--steps', 1, '--replicas', 1).events[0]
    check(len(start['devices']) == 1, 'more devices than replicas', start)


main([two_epochs, hundredth_steps, steps_end_at_an_epoch, last_of_unknown, short_last_batch, it_learns, plain_lines, no_strange_numbers, devices_by_default],
     [two_epochs])
