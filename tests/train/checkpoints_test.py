"""Saving and going on: a run that was stopped ends as if it had never been."""
import shutil

from command import *


def saved(folder, *words, **how):
    return train('--checkpoint', folder, *words, **how)


def steps_of(folder):
    return [int(name[-len('000000000.safetensors'):-len('.safetensors')]) for name in checkpoints(folder)]


def at_epoch_ends():
    """1 epoch, then 2, then 3 in all, are 3 in one."""
    want = train('--epochs', 3)
    for epochs in 1, 2, 3:
        done = saved('ends', '--epochs', epochs, '--resume')
        check([e['epoch'] for e in done.events if e['event'] == 'epoch'] == [epochs], 'not one more epoch', done)
        check(done.event('end')['steps'] == 10 * epochs, 'not the number of all steps', done)
    check(done.shas == want.shas, 'other bits than in one run', done, want)
    last = [[e for e in d.events if e['event'] == 'epoch'][-1] for d in (done, want)]
    check(*[all(last[0][k] == last[1][k] for k in ('loss', 'accuracy', 'test_loss', 'test_accuracy'))],
          'other figures than in one run', *last)
    check(steps_of('ends') == [10, 20, 30], 'not one checkpoint an epoch')


def in_the_middle():
    """Stopped at steps 3, 10, 14 and 19 of 25; figures of the broken epochs are those of whole ones."""
    want = train('--epochs', 3, '--steps', 25)
    for steps in 3, 10, 14, 19, 25:
        done = saved('middle', '--epochs', 3, '--steps', steps, '--resume')
        check(done.event('end')['steps'] == steps, 'not where it should end', done)
    check(done.shas == want.shas, 'other bits than in one run', done, want)
    whole = [e for e in want.events if e['event'] == 'epoch'][1]
    for e in [e for e in train('--epochs', 2, '--checkpoint', 'middle-2', '--steps', 14).events if e['event'] == 'epoch']:
        check(e['epoch'] == 1, 'more than an epoch', e)
    broken = [e for e in saved('middle-2', '--epochs', 2, '--resume').events if e['event'] == 'epoch']
    check(len(broken) == 1 and broken[0]['epoch'] == 2 and broken[0]['loss'] == whole['loss']
          and broken[0]['accuracy'] == whole['accuracy'], 'a broken epoch has other figures', broken, whole)


def where_it_goes_on():
    """A resumed run counts on from where it was; other devices go on with the same bits."""
    saved('on', '--epochs', 2, '--steps', 13)
    done = saved('on', '--epochs', 2, '--resume', '--devices', '/cpu:0', '--replicas', 2)
    steps = [e['step'] for e in done.events if e['event'] == 'step']
    check(set(steps) <= {14, 20} and 20 in steps, f'not steps 14 and 20: {steps}', done)
    check(done.event('start')['resumed_step'] == 13, 'it does not say where it goes on', done)
    check(done.shas == train('--epochs', 2).shas, 'other bits', done)


def other_optimizers():
    """Slots and rates go on, too."""
    for i, words in enumerate((['--optimizer', 'momentum'], ['--optimizer', 'sgd', '--schedule', 'cosine', '--warmup', 4],
                               ['--replicas', 3, '--clip', '0.5'])):
        want = train('--epochs', 2, *words)
        saved(f'other-{i}', '--epochs', 2, '--checkpoint-every', 4, *words)
        os.remove(checkpoints(f'other-{i}')[-1])
        done = saved(f'other-{i}', '--epochs', 2, *words, '--resume')
        check(done.shas == want.shas, f'other bits with {words}', done, want)


def kept():
    """The last 3, or as many as --keep says."""
    saved('kept', '--epochs', 2, '--checkpoint-every', 3)
    check(steps_of('kept') == [15, 18, 20], f'not the last 3: {steps_of("kept")}')
    saved('kept-5', '--epochs', 2, '--checkpoint-every', 3, '--keep', 5)
    check(steps_of('kept-5') == [10, 12, 15, 18, 20], f'not the last 5: {steps_of("kept-5")}')
    saved('kept-1', '--epochs', 2, '--keep', 1)
    check(steps_of('kept-1') == [20], 'not the last one')


def the_record():
    """A checkpoint says where it comes from."""
    saved('record', '--seed', 5)
    held, notes = tensors(checkpoints('record')[0])
    check(all(name in held for name in CNN), 'weights are not there by name', held.keys())
    text = json.dumps(notes)
    for what in '0.1.0', 'cnn', '--seed 5', '--checkpoint record':
        check(what in text, f'{what!r} is not in the record', notes)
    check({'5', '2', '1', '10'} <= set(notes.values()), 'seed, V, P or steps are not in the record', notes)


def damaged():
    """The newest is damaged: the one before, a warning, and the same bits at the end."""
    want = train('--epochs', 2)
    saved('good', '--epochs', 2, '--steps', 15, '--checkpoint-every', 5)
    harm = {'bit': lambda p: flip(p), 'head': lambda p: flip(p, 0), 'names': lambda p: flip(p, 0.0001),
            'end': lambda p: flip(p, 0.9999999), 'half': lambda p: cut(p), 'empty': lambda p: cut(p, 0),
            'one': lambda p: os.truncate(p, os.path.getsize(p) - 1)}
    for name, do in harm.items():
        shutil.copytree('good', name)
        newest = checkpoints(name)[-1]
        do(newest)
        done = saved(name, '--epochs', 2, '--resume')
        warnings = done.err.splitlines()
        check(len(warnings) == 1 and warnings[0].startswith('lockstep') and newest in warnings[0],
              f'{name}: no warning about {newest}', done)
        check(done.event('start')['resumed_step'] == 10, 'not from step 10', done)
        check(done.shas == want.shas, f'{name}: other bits', done, want)
        check(newest not in saved(name, '--epochs', 2, '--resume').err, 'still not written anew')


def all_damaged():
    """Nothing good is left: one clear line, nothing begun, nothing removed."""
    saved('all', '--epochs', 2, '--checkpoint-every', 5)
    for path in checkpoints('all'):
        flip(path)
    before = checkpoints('all')
    done = lockstep('train', *SMALL, '--json', '--checkpoint', 'all', '--resume', '--epochs', 3, status=2)
    lines = done.err.splitlines()
    check(lines[-1].startswith('lockstep train: ') and "'all'" in lines[-1].replace('all/', "all'"), 'no clear line', done)
    check(done.events[-1]['event'] == 'error' and not any(e['event'] == 'step' for e in done.events), 'it began', done)
    check(checkpoints('all') == before, 'files are gone')


def nothing_there():
    """--resume with nothing there begins, and says so."""
    done = saved('new/and/deep', '--resume')
    check(done.shas == train().shas, 'not a run from the beginning', done)
    os.mkdir('there')
    check(saved('there', '--resume').shas == done.shas, 'not a run from the beginning in an empty directory')


def done_already():
    """Nothing is left to do: the end, and nothing else."""
    first = saved('done', '--epochs', 2)
    again = saved('done', '--epochs', 2, '--resume')
    check(again.shas == first.shas and again.event('end')['test_accuracy'] == first.event('end')['test_accuracy'],
          'another end', again, first)
    check([e['event'] for e in again.events] == ['start', 'end'], 'more than an end', again)


def begun_anew():
    """A new run in the directory of a longer one: that is moved aside whole, and what is taken from the
    directory later is the new run's."""
    saved('twice', '--epochs', 3)
    before = {os.path.basename(n): tensors(n) for n in checkpoints('twice')}
    second = saved('twice', '--epochs', 2, '--seed', 2)
    check('moved 3 checkpoints of an earlier run to twice/earlier-1\n' in second.err, 'it does not say so', second)
    check({os.path.basename(n): tensors(n) for n in checkpoints('twice/earlier-1')} == before, 'not moved whole')
    third = saved('twice', '--epochs', 2, '--seed', 2, '--resume')
    check(third.shas == second.shas, 'it goes on with the run before', third, second)


def strange_names():
    """A directory's name is no pattern: what is moved is its own."""
    saved('run1')
    for name in 'run[1]', 'run*':
        first = saved(name)
        check('moved' not in first.err, 'it moved something else', first)
        check('moved 1 checkpoint of an earlier run to ' + name + '/earlier-1\n' in saved(name).err, 'not moved')
        check(steps_of('run1') == steps_of(name) == steps_of(name + '/earlier-1') == [10], 'not its own')


def logged_anew():
    """A log of an earlier run is moved aside, too, with and without checkpoints; not by --resume."""
    train('--log', 'log')
    before = {n: contents('log/' + n) for n in os.listdir('log')}
    check(any('tfevents' in n for n in before) and 'run.jsonl' in before, 'no log', before.keys())
    done = train('--log', 'log', '--checkpoint', './log')
    check(done.err == 'lockstep train: moved the log of an earlier run to ./log/earlier-1\n', 'it does not say so', done)
    check({n: contents('log/earlier-1/' + n) for n in os.listdir('log/earlier-1')} == before, 'not moved whole')
    names = sorted(os.listdir('log'))
    resumed = train('--log', 'log', '--checkpoint', './log', '--resume', '--epochs', 2)
    check(resumed.err == '' and set(names) < set(os.listdir('log')), '--resume moved something', resumed, os.listdir('log'))
    done = train('--log', 'log', '--checkpoint', './log')
    check(done.err == 'lockstep train: moved 2 checkpoints of an earlier run to ./log/earlier-2\n', 'not once', done)
    check(len([n for n in os.listdir('log') if 'tfevents' in n]) == 1, 'not one log', os.listdir('log'))


def contents(path):
    with open(path, 'rb') as f:
        return f.read()


def other_data():
    """Another --data cannot go on: both are named. A step that fails says why, and nothing of that."""
    saved('data', '--epochs', 2, '--steps', 13)
    write_npz('other.npz', train=SAMPLES - 20)
    failed('--data', 'other.npz', '--batch', 16, '--epochs', 2, '--resume', '--json', '--checkpoint', 'data', status=2,
           says=['data/step-000000013.safetensors', f"'{DATA}'", "'other.npz'"])
    labels = bytearray(SAMPLES)
    labels[0] = 200
    write_npz('label.npz', y_train=npy('|u1', (SAMPLES,), bytes(labels)))
    for more in [], ['--resume']:
        done = failed('--data', 'label.npz', '--batch', 16, '--checkpoint', 'label', '--json', *more, status=1, says='label 200')
        check(checkpoints('label'), 'nothing to go on from', done)


def another_rate():
    """--lr with --resume is taken, or refused; it is not passed over in silence."""
    saved('rate')
    same = saved('rate', '--epochs', 2, '--resume')
    os.remove(checkpoints('rate')[-1])
    done = saved('rate', '--epochs', 2, '--resume', '--lr', '0.1')
    check(done.shas != same.shas or 'rate' in done.err or '--lr' in done.err, 'nobody heard of --lr 0.1', done, same)


def from_weights():
    """--init FILE takes weights by name, of a checkpoint and of a file of another's making."""
    first = saved('init', '--epochs', 2)
    newest = checkpoints('init')[-1]
    done = train('--init', newest, '--lr', '1e-30', '--optimizer', 'sgd', '--steps', 1)
    check(done.shas[0] == first.shas[0], 'not these weights', done, first)
    held, _ = tensors(newest)
    plain = {n: held[n] for n in reversed(CNN)}
    write_safetensors('plain.safetensors', plain)
    check(train('--init', 'plain.safetensors', '--lr', '1e-30', '--optimizer', 'sgd', '--steps', 1).shas == done.shas,
          'not these weights from a file with nothing but weights')
    check(train('--init', newest).shas != train().shas, '--init changes nothing')


SHAPES = {'conv/kernel': [3, 3, 1, 32], 'conv/bias': [32], 'hidden/kernel': [5408, 64], 'hidden/bias': [64],
          'out/kernel': [64, 10], 'out/bias': [10]}


def write_safetensors(path, held):
    head, at = {}, 0
    for name, data in held.items():
        head[name] = {'dtype': 'F32', 'shape': SHAPES[name], 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(held.values()))


def bad_weights():
    """--init with files that will not do."""
    saved('bad', '--steps', 1)
    newest = checkpoints('bad')[-1]
    held, _ = tensors(newest)
    less = {n: held[n] for n in CNN if n != 'hidden/bias'}
    write_safetensors('less.safetensors', less)
    failed(*SMALL, '--init', 'less.safetensors', '--json', status=2, says=['less.safetensors', 'hidden/bias'])
    failed('cnn2', *SMALL, '--init', newest, '--json', status=2, says=[newest])
    failed(*SMALL, '--init', 'nowhere.safetensors', status=2, says='nowhere.safetensors')
    flip(newest)
    failed(*SMALL, '--init', newest, status=2, says=[newest, 'damaged'])


def refused():
    """Another model, another V: by name, and nothing is harmed."""
    first = saved('refused')
    before = checkpoints('refused')
    with open('refused/run.jsonl', 'rb') as f:
        log = f.read()
    words = [*SMALL, '--checkpoint', 'refused', '--resume', '--epochs', 2]
    failed('cnn2', *words, status=2, says=["'cnn'", "'cnn2'", 'refused/step-000000010.safetensors'])
    failed('mlp', *words, '--json', status=2, says=["'cnn'", "'mlp'"])
    failed(*words, '--replicas', 3, status=2, says=['2 replicas', 'has 3'])
    failed(*words, '--devices', '/cpu:0', '--json', status=2, says=['2 replicas', 'has 1'])
    check(checkpoints('refused') == before, 'checkpoints changed')
    with open('refused/run.jsonl', 'rb') as f:
        check(f.read() == log, 'the log of the run that is there changed')
    check(saved('refused', '--resume').shas == first.shas, 'other bits')


def refused_settings():
    """Another seed, batch or optimizer cannot go on, either: the line names which."""
    saved('settings')
    words = [*SMALL, '--checkpoint', 'settings', '--resume', '--epochs', 2]
    for option, value in ('seed', 7), ('batch', 8), ('optimizer', 'sgd'):
        failed(*words, '--' + option, value, status=2, says=[option])


main([at_epoch_ends, in_the_middle, where_it_goes_on, other_optimizers, kept, the_record, damaged, all_damaged, nothing_there,
      done_already, begun_anew, strange_names, logged_anew, *[other_data] * (KIND == 'npz'), another_rate, from_weights, bad_weights, refused, refused_settings],
     [in_the_middle])
