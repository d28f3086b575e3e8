"""What is done with a trained model: evaluate, predict, sample, plot; and what else a run writes."""
import shutil
import struct
import xml.etree.ElementTree as xml
import zlib

from command import *

SMALL_TEST = ['--data', DATA, '--batch', 16]


def trained(folder, *words):
    """Once for all who want it."""
    if not os.path.exists(folder):
        os.makedirs('runs', exist_ok=True)
        with open(f'runs/{folder}.jsonl', 'w') as f:
            f.write(train('--checkpoint', folder, *words).out)
    with open(f'runs/{folder}.jsonl') as f:
        return [parse(line) for line in f]


def evaluates():
    """The same figures as the last test of the training; from a directory, from a file, on any device."""
    end = trained('run', '--epochs', 2)[-1]
    for where in ['run'], [checkpoints('run')[-1]], ['run', '--devices', '/cpu:0'], ['run', '--model', 'cnn']:
        done = lockstep('evaluate', *where, *SMALL_TEST, '--json')
        check(len(done.events) == 1, 'more than one event', done)
        got = done.event('evaluate')
        check(got['loss'] == end['test_loss'] and got['accuracy'] == end['test_accuracy'], f'not those of {end}', done)
        check(got['samples'] == TESTED, 'not all samples', done)
    done = lockstep('evaluate', 'run', *SMALL_TEST)
    check(f'{end["test_loss"]:.4f}' in done.out and f'{100 * end["test_accuracy"]:.2f}' in done.out, 'other figures', done)
    epochs = [e for e in trained('run') if e['event'] == 'epoch']
    got = lockstep('evaluate', checkpoints('run')[0], *SMALL_TEST, '--json').event('evaluate')
    check(got['loss'] == epochs[0]['test_loss'], 'the first checkpoint is not of the first epoch', got, epochs[0])


def evaluates_without_options():
    """Of small data the batch by default is no obstacle; and the data is that of the run."""
    end = trained('run', '--epochs', 2)[-1]
    got = lockstep('evaluate', 'run', '--data', DATA, '--json').event('evaluate')
    check(abs(got['loss'] - end['test_loss']) < 1e-5, 'another loss', got, end)


def evaluates_weights():
    """Any safetensors file with the model's weights, and --model."""
    end = trained('run', '--epochs', 2)[-1]
    held, _ = tensors(checkpoints('run')[-1])
    head, at = {}, 0
    shapes = [[3, 3, 1, 32], [32], [5408, 64], [64], [64, 10], [10]]
    for name, shape in zip(CNN, shapes):
        head[name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [at, at + len(held[name])]}
        at += len(held[name])
    text = json.dumps(head).encode()
    with open('weights.safetensors', 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(held[n] for n in CNN))
    got = lockstep('evaluate', 'weights.safetensors', '--model', 'cnn', *SMALL_TEST, '--json').event('evaluate')
    check(got['loss'] == end['test_loss'], 'another loss', got, end)
    failed('weights.safetensors', *SMALL_TEST, command='evaluate', status=2, says='--model')


def does_not_evaluate():
    """What is no checkpoint."""
    os.makedirs('none', exist_ok=True)
    failed('none', *SMALL_TEST, command='evaluate', status=2, says='none')
    failed('nowhere', *SMALL_TEST, '--json', command='evaluate', status=2, says='nowhere')
    failed(DATA.replace('*', 'train'), *SMALL_TEST, command='evaluate', status=2)
    failed(command='evaluate', status=2)
    trained('run', '--epochs', 2)
    failed('run', *SMALL_TEST, '--model', 'cnn2', command='evaluate', status=2)
    shutil.copytree('run', 'harmed')
    flip(checkpoints('harmed')[-1])
    done = lockstep('evaluate', 'harmed', *SMALL_TEST, '--json')
    check(checkpoints('harmed')[-1] in done.err, 'no warning', done)
    failed(checkpoints('harmed')[-1], *SMALL_TEST, command='evaluate', status=2, says='damaged')


# ---- predict --------------------------------------------------------------------------------------


def png(pixels, width, height):
    """A grey picture."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    rows = b''.join(b'\0' + pixels[width * i:width * i + width] for i in range(height))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0))
            + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def check_predictions(done, count, top):
    events = [e for e in done.events if e['event'] == 'prediction']
    check(len(events) == count and [e['sample'] for e in events] == list(range(count)), f'not {count} samples', done)
    for e in events:
        chances = [c['probability'] for c in e['top']]
        check(len(chances) == top and chances == sorted(chances, reverse=True), f'not the top {top}', e)
        check(len({c['class'] for c in e['top']}) == top, 'a class twice', e)
        check(e['class'] == e['top'][0]['class'] and e['probability'] == chances[0], 'not the likeliest', e)
        check(top < 10 or abs(sum(chances) - 1) < 1e-5, 'probabilities do not sum to 1', e)
    return events


def predicts():
    """Arrays and a picture give the same; as many classes as --top says; accuracy as in the test."""
    end = trained('run', '--epochs', 2)[-1]
    x, y = samples(TESTED, 2)
    with open('x.npy', 'wb') as f:
        f.write(npy('|u1', (TESTED, 28, 28), x))
    events = check_predictions(lockstep('predict', 'run', 'x.npy', '--top', 10, '--json'), TESTED, 10)
    right = sum(e['class'] == label for e, label in zip(events, y)) / TESTED
    check(abs(right - end['test_accuracy']) < 1e-9, f'{right} are right, not as in the test', end)
    check_predictions(lockstep('predict', 'run', 'x.npy', '--json'), TESTED, 3)
    with open('7.png', 'wb') as f:
        f.write(png(x[784 * 7:784 * 8], 28, 28))
    one = check_predictions(lockstep('predict', 'run', '7.png', '--top', 10, '--json'), 1, 10)[0]
    check(all(a['class'] == b['class'] and abs(a['probability'] - b['probability']) < 1e-6
              for a, b in zip(one['top'], events[7]['top'])), 'the picture is not its array', one, events[7])
    plain = lockstep('predict', 'run', '7.png', '--top', 2).out
    check(f'{one["probability"]:.4f}' in plain and str(one['class']) in plain, 'no such class', plain)


def does_not_predict():
    trained('run', '--epochs', 2)
    for name, data in ('text.png', b'no picture\n'), ('empty.npy', b''), ('half.png', png(bytes(784), 28, 28)[:60]):
        with open(name, 'wb') as f:
            f.write(data)
        failed('run', name, '--json', command='predict', status=2, says=name)
    failed('run', 'nowhere.png', command='predict', status=2, says='nowhere.png')
    failed('run', command='predict', status=2)
    failed('nowhere', 'text.png', command='predict', status=2, says='nowhere')
    failed('run', 'text.png', '--top', 0, command='predict', status=2, says='--top')
    with open('shape.npy', 'wb') as f:
        f.write(npy('|u1', (3, 5), bytes(15)))
    failed('run', 'shape.npy', command='predict', status=2, says='shape.npy')


# ---- gpt ------------------------------------------------------------------------------------------


def samples_text():
    """A gpt that saw two steps writes bytes; the same seed the same ones."""
    words = 'the lord said unto moses and of in day light god earth'.split()
    r = random.Random(2)
    with open('text.txt', 'w') as f:
        f.write('\n'.join(' '.join(r.choice(words) for _ in range(12)) for _ in range(400)))
    bible = {'PATH': fake_bible('text.txt') + ':' + os.environ['PATH']}
    done = lockstep('train', 'gpt', '--steps', 2, '--batch', 2, '--checkpoint', 'gpt', '--json', env=bible)
    start, end = done.event('start'), done.event('end')
    check(start['parameters'] > 3e6 and start['global_batch'] == 4, 'not this gpt', done)
    check(abs(end['bits_per_byte'] - end['test_loss'] / math.log(2)) < 1e-4, 'bits_per_byte are not so many', done)
    for data in [], ['--data', 'text.txt'], ['--data', 'bible']:
        evaluated = lockstep('evaluate', 'gpt', *data, '--batch', 2, '--json', env=bible).event('evaluate')
        check(evaluated['bits_per_byte'] == end['bits_per_byte'], f'other bits per byte with {data}', evaluated, end)
    one, again, other = (sampled('--bytes', 50, '--seed', n) for n in (3, 3, 4))
    check(one == again, 'the same seed gives another text', one, again)
    check(one != other, 'another seed gives the same text', one)
    check(50 <= len(one) <= 52, f'not 50 bytes: {len(one)}', one)
    prompted = sampled('--bytes', 20, '--prompt', 'In the ')
    check(prompted.startswith(b'In the '), 'it does not begin with the prompt', prompted)
    cold = {sampled('--bytes', 30, '--temperature', 0, '--seed', n) for n in (1, 2)}
    check(len(cold) == 1, 'with temperature 0 seeds matter', cold)
    event = lockstep('sample', 'gpt', '--bytes', 20, '--prompt', 'In the ', '--json').event('sample')
    check(event['prompt'] == 'In the ' and len(event['text']) <= 20, 'not this prompt', event)
    failed('gpt', '--temperature', 'hot', command='sample', status=2, says="'hot'")
    failed('gpt', '7.png', command='predict', status=2, says='sample')
    trained('run', '--epochs', 2)
    failed('run', '--json', command='sample', status=2, says='predict')


def warms_up():
    """A language model's rate climbs for 100 steps, unless it is told otherwise; or for half of a cosine's."""
    with open('letters.txt', 'w') as f:
        f.write('abracadabra ' * 400)
    with open('letters.c', 'w') as f:
        f.write('#include <lockstep/train.h>\nls_model *lockstep_model(void)\n{\n'
                '    ls_model *m = ls_model_new(LS_MODEL(.name = "letters", .input = "i32[8]", .label = "i32[8]"));\n'
                '    ls_embedding_layer(m, NULL, 256, 256, 0);\n    return m;\n}\n')

    def weights(*words):
        return lockstep('train', 'letters.c', '--data', 'letters.txt', '--batch', 4, '--steps', 6, '--json', *words).shas[0]
    own, hundred, none, cosine, half = (weights(*words.split()) for words in (
        '', '--warmup 100', '--warmup 0', '--schedule cosine', '--schedule cosine --warmup 3'))
    check(own == hundred, 'not a warm-up of 100 steps')
    check(none != hundred, '--warmup 0 warms up')
    check(cosine == half, 'not half of the cosine')


def fake_bible(text):
    """A directory for PATH with a program `bible` that prints this file, whatever it is asked."""
    os.makedirs('bin', exist_ok=True)
    with open('bin/bible', 'w') as f:
        f.write(f'#!/bin/sh\nexec cat {text}\n')
    os.chmod('bin/bible', 0o755)
    return os.path.abspath('bin')


def sampled(*words):
    """The bytes as they come."""
    return subprocess.run([LOCKSTEP, 'sample', 'gpt', *map(str, words)], stdin=subprocess.DEVNULL, check=True,
                          stdout=subprocess.PIPE, timeout=PATIENCE, env=environment()).stdout


# ---- plot, log, profile ---------------------------------------------------------------------------


def check_svg(path):
    root = xml.parse(path).getroot()
    check(root.tag == '{http://www.w3.org/2000/svg}svg', f'{path} is no SVG', root.tag)
    text = ' '.join(root.itertext())
    check('loss' in text and 'accuracy' in text and 'nan' not in text, f'{path} has no curves', text)
    numbers = [v for e in root.iter() for k, v in e.attrib.items() if k in ('d', 'points', 'x', 'y', 'cx', 'cy')]
    check(numbers and not any('nan' in v or 'inf' in v for v in numbers), f'{path} has strange coordinates')


def plots():
    """At the end of a run and by command: in the terminal and as SVG."""
    trained('run', '--epochs', 2)
    done = lockstep('plot', 'run')
    for what in 'cnn', 'loss', 'accuracy', 'replica 0', 'replica 1', 'input', 'reduce', 'run/plot.svg':
        check(what in done.out, f'no {what!r}', done)
    check(all(len(line) <= 80 for line in done.out.splitlines()), 'wider than 80 columns', done)
    check('\033' not in done.out, 'colours without a terminal', done)
    check_svg('run/plot.svg')
    done = lockstep('plot', 'run', '--svg', 'other.svg', '--width', 50, env={'LC_ALL': 'C'})
    check(done.out.isascii() and all(len(line) <= 50 for line in done.out.splitlines()), 'not ASCII in 50 columns', done)
    check_svg('other.svg')
    check(lockstep('plot', 'run', '--json').event('plot')['svg'] == 'run/plot.svg', 'no event')
    lockstep('train', *SMALL, '--checkpoint', 'plotted', '--epochs', 2)
    check_svg('plotted/plot.svg')
    failed('nowhere', command='plot', status=2, says='nowhere')
    failed('run', '--svg', 'nowhere/x.svg', command='plot', status=1, says='nowhere/x.svg')
    with open('run/run.jsonl', 'a') as f:
        f.write('{"event":"step","st')  # as of a run that is under way
    lockstep('plot', 'run')


def plots_resumed():
    """A run in three parts is one plot; a line that was torn off is one line that is lost."""
    torn = '{"event":"step","st'
    for epochs in 1, 2, 3:
        train('--checkpoint', 'parts', '--epochs', epochs, '--resume')
        if epochs == 1:
            with open('parts/run.jsonl', 'a') as f:
                f.write(torn)
    plot = lockstep('plot', 'parts', '--json').event('plot')
    check(plot['steps'] == 30 and plot['damaged_lines'] == 1, 'not 30 steps, and a torn line', plot)
    with open('parts/run.jsonl') as f:
        epochs = [e['epoch'] for e in (parse(line) for line in f if line != torn + '\n') if e['event'] == 'epoch']
    check(epochs == [1, 2, 3], f'not three epochs in the log: {epochs}')


def logs():
    """--log writes event files of records with the right checksums."""
    train('--log', 'tensorboard', '--epochs', 2)
    files = [n for n in os.listdir('tensorboard') if 'tfevents' in n]
    check(len(files) == 1, 'not one event file', os.listdir('tensorboard'))
    with open(os.path.join('tensorboard', files[0]), 'rb') as f:
        data = f.read()
    at, records = 0, []
    while at < len(data):
        size = struct.unpack('<Q', data[at:at + 8])[0]
        check(struct.unpack('<I', data[at + 8:at + 12])[0] == masked_crc32c(data[at:at + 8]), 'a bad checksum')
        records.append(data[at + 12:at + 12 + size])
        at += 16 + size
    check(at == len(data) and b'brain.Event:2' in records[0], 'no event file', records[0])
    check(any(b'loss' in r for r in records) and any(b'conv/kernel' in r for r in records), 'no loss, or no weights')


def profiles():
    """--profile writes a trace that has every replica and phase."""
    train('--profile', 'trace.json', '--steps', 5)
    with open('trace.json') as f:
        trace = json.load(f, parse_constant=refuse)
    events = trace['traceEvents'] if isinstance(trace, dict) else trace
    names = {e.get('name') for e in events}
    for what in 'input', 'forward', 'backward', 'reduce', 'apply':
        check(any(what in str(n) for n in names), f'no {what}', names)
    spans = [e for e in events if e.get('ph') == 'X']
    check(spans and all(e['dur'] >= 0 and e['ts'] >= 0 for e in spans), 'no spans')
    check(len({(e['pid'], e['tid']) for e in spans}) >= 2, 'not two replicas')


# ---- bench, model files ---------------------------------------------------------------------------


def benches():
    """bench train --json: one line with these fields."""
    done = lockstep('bench', 'train', 'cnn', '--replicas', 2, '--batch', 8, '--steps', 20, '--json')
    (b,) = [json.loads(line) for line in done.out.splitlines()]
    check((b['bench'], b['model'], b['replicas'], b['batch']) == ('train', 'cnn', 2, 8), 'not these fields', b)
    for name in 'samples_per_second', 'best', 'loss', 'peak_rss_bytes':
        check(type(b[name]) in (int, float) and b[name] > 0, f'no {name}', b)
    check(b['best'] >= b['samples_per_second'] and 'tokens_per_second' not in b, 'not the best', b)
    check(lockstep('bench', 'train', '--steps', 12, '--batch', 4).out.count('\n') == 1, 'not a line')
    done = lockstep('bench', 'train', 'nosuch', status=2)
    check(done.err.startswith("lockstep bench train: ") and "'nosuch'" in done.err, 'no clear line', done)


def explained():
    """bench train --explain: a line for every operator, which are some of the time and not more than all of it."""
    done = lockstep('bench', 'train', 'cnn', '--batch', 8, '--steps', 20, '--explain', '--json')
    first, *rows = [json.loads(line) for line in done.out.splitlines()]
    check(first['bench'] == 'train' and rows, 'no rows', done)
    names = {r['name'] for r in rows}
    check(names >= {'matmul_bias_act', 'adam_reduced'} and any(n.startswith('conv2d') for n in names), 'not these', names)
    for r in rows:
        check(r['bench'] == 'operator' and r['us_per_step'] >= 0 and r['calls_per_step'] > 0, 'not so', r)
        check(r['phase'] in ('forward', 'backward', 'reduce', 'apply', 'other') and r['shapes'], 'not so', r)
    check(0.05 < sum(r['share'] for r in rows) < 1.01, 'shares', [r['share'] for r in rows])
    check([r['share'] for r in rows] == sorted((r['share'] for r in rows), reverse=True), 'not in order')
    lines = lockstep('bench', 'train', 'cnn', '--batch', 8, '--steps', 20, '--explain').out.splitlines()
    check(lines[1].startswith('limits of a device: ') and 'GF/s' in lines[3] + lines[4] and len(lines) > 10, 'no table', *lines)


def benches_shorter():
    """As few steps as one may ask for."""
    for steps in 1, 2, 5:
        done = lockstep('bench', 'train', '--steps', steps, '--batch', 4, '--json')
        b = json.loads(done.out)
        check(b['samples_per_second'] is None or b['samples_per_second'] > 0, 'no speed', done)


def own_model():
    """A FILE.c, compiled here, from the build tree: trained, resumed, evaluated; and the same as FILE.so."""
    shutil.copy(os.path.join(ROOT, 'examples', 'model_file.c'), 'mine.c')
    words = ['mine.c', *SMALL, '--json', '--checkpoint', 'mine']
    lockstep('train', *words, '--steps', 7)
    done = lockstep('train', *words, '--epochs', 2, '--resume')
    want = lockstep('train', 'mine.c', *SMALL, '--json', '--epochs', 2)
    check(done.shas == want.shas, 'other bits', done, want)
    check(done.event('start')['model'] == 'mine.c', 'not this model', done)
    got = lockstep('evaluate', 'mine', *SMALL_TEST, '--json').event('evaluate')
    failed('../mine', command='evaluate', status=2, says=["'mine.c'", '--model FILE.c'], cwd='mine')
    check(got['loss'] == want.event('end')['test_loss'], 'another loss', got, want)
    other = lockstep('train', 'mine.c', *SMALL, '--json', '--epochs', 2, env={'CC': 'cc -DFREE_FORM=1'})
    check(other.event('start')['parameters'] != want.event('start')['parameters'], '$CC is not the compiler', other)
    subprocess.run(['cc', '-shared', '-fPIC', '-I', os.path.join(ROOT, 'include'), '-o', 'mine.so', 'mine.c'], check=True)
    check(lockstep('train', './mine.so', *SMALL, '--json', '--epochs', 2).shas == want.shas, 'other bits as .so')


def elsewhere():
    """A FILE.c in another directory, with a header beside it and a blank in its name."""
    os.makedirs('a b', exist_ok=True)
    with open('a b/units.h', 'w') as f:
        f.write('#define UNITS 10\n')
    with open('a b/my model.c', 'w') as f:
        f.write('#include <lockstep/train.h>\n#include "units.h"\nls_model *lockstep_model(void)\n{\n'
                '    ls_model *m = ls_model_new(LS_MODEL(.name = "units", .input = "f32[28,28,1]"));\n'
                '    ls_flatten_layer(m);\n    ls_dense_layer(m, LS_DENSE_LAYER(.units = UNITS));\n    return m;\n}\n')
    done = lockstep('train', 'a b/my model.c', *SMALL, '--json')
    check(done.event('start')['parameters'] == 7850, 'not this model', done)


main([evaluates, evaluates_without_options, evaluates_weights, does_not_evaluate, predicts, does_not_predict, samples_text,
      warms_up, plots, plots_resumed, logs, profiles, benches, explained, benches_shorter, own_model, elsewhere])
