"""The result belongs to the command line: the same bits on any devices; weights_sha256 is what it says."""
from command import *


def devices():
    """One device or two, and the default, whatever it is."""
    one = train('--replicas', 2, '--devices', '/cpu:0', '--epochs', 2)
    two = train('--replicas', 2, '--devices', '/cpu:0,/cpu:1', '--epochs', 2)
    check(one.event('start')['devices'] == ['/cpu:0'] and two.event('start')['devices'] == ['/cpu:0', '/cpu:1'],
          'not these devices', one, two)
    check(one.shas == two.shas, 'one device and two differ', one, two)
    check(one.shas == train('--epochs', 2).shas, 'the default differs')
    losses = [[(e['loss'], e.get('test_loss')) for e in d.events if e['event'] in ('step', 'epoch')] for d in (one, two)]
    check(losses[0] == losses[1], 'losses differ', one, two)


def three_replicas():
    """V = 3, on 1, 2 and 3 devices, in any order, with any way to add up."""
    want = train('--replicas', 3, '--devices', '/cpu:0').shas
    for more in (['--devices', '/cpu:0,/cpu:1'], ['--devices', '/cpu:1,/cpu:0'], ['--devices', '/cpu:0,/cpu:1,/cpu:2'],
                 ['--cross-device-ops', 'direct'], ['--cross-device-ops', 'hierarchical-copy'],
                 ['--cross-device-ops', 'reduction-to-one-device']):
        done = train('--replicas', 3, *more)
        check(done.shas == want, f'{more} changes the result', done)
    check(want != train('--replicas', 2).shas, 'V is no part of the result')


def models():
    """The other models."""
    for model, steps in ('cnn2', 3), ('mlp', 1), ('resnet', 2):
        a, b = (train(model, '--replicas', 2, '--devices', d, '--steps', steps) for d in ('/cpu:0', '/cpu:0,/cpu:1'))
        check(a.event('start')['model'] == model and a.shas == b.shas, f'{model} differs', a, b)


def optimizers():
    """Each optimizer, and rates that change."""
    seen = set()
    for words in (['--optimizer', 'sgd'], ['--optimizer', 'momentum'], ['--optimizer', 'adam'], ['--optimizer', 'adamw'],
                  ['--schedule', 'cosine', '--warmup', 3], ['--clip', '0.1', '--weight-decay', '0.01'], ['--lr', '0.002'],
                  ['--seed', 2], ['--seed', 0], ['--batch', 15]):
        a, b = (train(*words, '--replicas', 2, '--devices', d).shas for d in ('/cpu:0', '/cpu:0,/cpu:1'))
        check(a == b, f'{words} differs')
        check(a[0] not in seen and a[1] not in seen, f'{words} gives what another gave')
        seen |= set(a)


def seeds():
    """Another seed, other bits; the same one, the same."""
    one, two, again = (train('--seed', n).shas for n in (1, 2, 1))
    check(one[0] != two[0] and one[1] != two[1], 'seeds 1 and 2 give the same')
    check(one == again and one == train().shas, 'seed 1, the default, is not always the same')


def what_changes_nothing():
    """--checkpoint, --log, --profile, --json watch; they change no bit."""
    want = train('--epochs', 2).shas
    done = train('--epochs', 2, '--checkpoint', 'watched', '--checkpoint-every', 3, '--log', 'watched', '--profile', 'trace.json')
    check(done.shas == want, 'watching changes the result', done)


def weights_are_hashed():
    """weights_sha256 is of the trainable variables in creation order, as they are in the checkpoint."""
    for name, words in ('hashed', ['--epochs', 2]), ('hashed-3', ['--replicas', 3, '--optimizer', 'momentum']):
        done = train(*words, '--checkpoint', name)
        check(weights_sha256(checkpoints(name)[-1], WEIGHTS) == done.shas[0], 'not that of the checkpoint', done)


def other_files():
    """The same samples from TFRecord files are the same run."""
    write_records('other-train.tfrecord', SAMPLES, 1)
    write_records('other-test.tfrecord', TESTED, 2)
    want = train('--epochs', 2)
    done = lockstep('train', '--data', 'other-*.tfrecord', '--batch', 16, '--json', '--epochs', 2)
    check(done.event('end')['test_loss'] == want.event('end')['test_loss'], 'another result', done, want)


main([devices, three_replicas, models, optimizers, seeds, what_changes_nothing, weights_are_hashed, other_files],
     [devices, seeds, weights_are_hashed])
