import assert from 'node:assert/strict';
import { test } from 'node:test';
import { badgeText } from '../src/core/panel/badge';
import { flowOf } from '../src/core/sections/clusters/flow';
import { layoutClusters } from '../src/core/sections/clusters/layout';
import { layoutBars, layoutStrip } from '../src/core/sections/verdict/layout';
import { isPythons, pythonRows } from '../src/core/sections/verdict/python';
import softmax from './fixtures/softmax.json';
import { measure, misplaced, report } from './helpers';
import { hugeReport } from './huge';

test('the strip has one cell an operation and a diamond for the host', () => {
  const { shapes } = layoutStrip(flowOf(report(softmax)), 356, measure);
  const cells = (mark: string) => shapes.filter(shape => shape.shape === 'box' && shape.mark === mark).length;
  assert.deepEqual([cells('c0'), cells('c1'), shapes.filter(shape => shape.shape === 'diamond').length], [10, 11, 1]);
});

test('of a run that was given up the strip is hollow, also where it is drawn as bands', () => {
  for (const json of [softmax, hugeReport(1000)]) {
    const { shapes } = layoutStrip(flowOf(report(json)), 356, measure, true);
    const marks = shapes.flatMap(shape =>
      shape.shape === 'box' ? [shape.mark] : shape.shape === 'words' ? [] : ['host']
    );
    assert.deepEqual(new Set(marks), new Set(['op']));
  }
});

test('the strip fits at every width', () => {
  for (const width of [216, 356, 536]) {
    const picture = layoutStrip(flowOf(report(softmax)), width, measure);
    assert.deepEqual(misplaced(picture), []);
    for (const shape of picture.shapes) {
      if (shape.shape === 'box') {
        assert.ok(shape.x + shape.width <= width, `${shape.x}`);
      }
    }
  }
});

test('many operations become proportional bands', () => {
  const { shapes } = layoutStrip(flowOf(report(hugeReport(1000))), 356, measure);
  assert.ok(shapes.filter(shape => shape.shape === 'box').length <= 50);
});

test('both bars share one scale', () => {
  const json = report(softmax);
  const { shapes } = layoutBars(flowOf(json), 0.0588, 0.2874, 356, measure);
  const boxes = shapes.filter(shape => shape.shape === 'box');
  const ours = boxes.filter(box => box.y < 10);
  const end = Math.max(...ours.map(box => box.x + box.width)) - 52;
  const numpy = boxes.find(box => box.y > 20)?.width ?? 0;
  assert.ok(Math.abs(end / numpy - 0.0588 / 0.2874) < 0.01);
});

test('where loops were asked for, the time of one stands first, and that of the run in a note', () => {
  const repeated = { loops: 10, runs: 3, seconds: [0.13, 0.14, 0.16], mean: 0.142, deviation: 0.0166, text: 'mean' };
  const json = report({ ...softmax, verdict: { ...softmax.verdict, seconds: 0.217, repeated } });
  assert.match(badgeText(json), /^142 ms ± 16\.6 ms · /);
  assert.doesNotMatch(badgeText(json), /217 ms/);
  assert.equal(json.verdict.runSeconds, 0.217);
  assert.equal(report({ ...softmax, verdict: { ...softmax.verdict, seconds: 0.217 } }).verdict.repeated, null);
});

const statement = (line: number, seconds: number) => ({
  text: `print(${line})`,
  reason: { code: 'effect', text: 'it may change or print something' },
  lines: [['<cell 7>', line, 0, line, 8]],
  seconds,
  calls: 1
});

test('statements that Python ran stand with line, time and reason, the slowest first', () => {
  const statements = [statement(3, 0.001), statement(4, 0.02), statement(5, 0.003), statement(6, 0.0001)];
  const json = { ...softmax, statements, verdict: { ...softmax.verdict, statements: 5, statement_seconds: 0.0241 } };
  const { rows, more } = pythonRows(report(json));
  assert.deepEqual(rows[0], {
    what: 'print(4)',
    where: 'line 4, run by Python, 20.0 ms',
    why: 'It may change or print something.'
  });
  assert.deepEqual(
    [rows.map(({ what }) => what).join(' '), more],
    ['print(4) print(5) print(3)', 'and 2 more statements']
  );
});

test('statements that took no share that is felt are not told of', () => {
  const { rows, more } = pythonRows(report({ ...softmax, statements: [statement(3, 1e-6)] }));
  assert.deepEqual([rows, more], [[], '']);
});

test('loops that were not rolled stand with line, iterations and reason', () => {
  const loop = {
    text: 'for i in range(n)',
    reason: { code: 'effect', text: 'append changes a list' },
    lines: [['<cell 7>', 9, 0, 9, 8]],
    iterations: 40
  };
  const { rows, more } = pythonRows(report({ ...softmax, loops: [loop], verdict: { ...softmax.verdict, loops: 1 } }));
  assert.deepEqual(rows, [
    {
      what: 'for i in range(n)',
      where: 'line 9, 40 iterations, one by one',
      why: 'append changes a list.'
    }
  ]);
  assert.equal(more, '');
});

test('a first run is marked, and what its quick code reaches of the peak is not told as what bounds it', () => {
  const said = { seconds: 0.031, quick_share: 1, text: 'First run: 31.0 ms of capturing and compiling.' };
  const loop = '9.8 µs ± 1.3 µs per loop (mean ± std. dev. of 7 runs, 3 loops each), compiled code alone.';
  const first = report({
    ...softmax,
    verdict: { ...softmax.verdict, retraces: 0, host: 0, first_run: said, repeated: { text: loop } },
    kernels: softmax.kernels
  });
  const { firstRun, repeated } = first.verdict;
  assert.deepEqual([firstRun?.seconds, repeated?.text, firstRun?.text], [0.031, loop, said.text]);
});

test('the badge begins with what the user waited for, and how that is beside NumPy', () => {
  const waited = {
    text: '10.0 s this run: 227 ms work, 8.2 s compiling',
    seconds: 10,
    work: 0.227,
    compiling: 8.2,
    python: 1.6
  };
  const speed = { text: 'about 5.0 × faster', code: 'about', ratio: 5 };
  const said = report({ ...softmax, verdict: { ...softmax.verdict, waited, speed } });
  assert.match(
    badgeText(said),
    /^10\.0 s this run: 227 ms work, 8\.2 s compiling · about 5\.0 × faster · 21\/22 compiled/
  );
  assert.doesNotMatch(badgeText(said), /58\.8 ms|287 ms/);
});

test('of statements that Python ran for one reason it stands once, in rows and boxes', () => {
  const reason = { code: 'data_dependent_shape', text: 'the length of m changes from run to run' };
  const statements = [1, 2, 3].map(n => ({ text: `x${n} = m`, reason, lines: [['<cell 7>', n, 0, n, 6]], seconds: n }));
  const read = report({ ...softmax, loops: [], verdict: { ...softmax.verdict, statements: 3, loops: 0 }, statements });
  const whys = pythonRows(read).rows.map(({ why }) => why);
  assert.deepEqual(whys, ['The length of m changes from run to run.', '', '']);
  const { items } = layoutClusters(flowOf(read), { width: 400, measure, open: new Set(), linked: null });
  const labels = items.filter(({ kind }) => kind === 'statement').map(({ label }) => label);
  assert.equal(labels.filter(label => label.includes(reason.text)).length, 1);
  assert.equal(labels.filter(label => label.endsWith('for the same reason.')).length, 2);
});

test('a print has no cross, what could not be captured has one', () => {
  const ran = (...codes: string[]) =>
    report({
      ...softmax,
      statements: codes.map(code => ({ text: 'print(x)', reason: { code, text: '' }, lines: [] }))
    });
  assert.deepEqual([ran('effect'), ran('statement', 'effect')].map(isPythons), [true, true]);
  assert.deepEqual([ran('effect', 'value'), ran('error')].map(isPythons), [false, false]);
});

test('whether no change helps, or none was found, is what the report says', () => {
  for (const code of ['done', 'left']) {
    const bound = { code, text: 'All is in `x`.' };
    const read = report({ ...softmax, verdict: { ...softmax.verdict, next: null, bound } });
    assert.deepEqual(read.verdict.bound, { code, text: 'All is in x.' });
  }
  assert.equal(report({ ...softmax, verdict: { ...softmax.verdict, bound: undefined } }).verdict.bound, null);
});

test('calls that ran as Python stand beside the plan, which is counted as ever', () => {
  const text =
    'runs as Python up to 1,023 elements: 1.3 µs beside 1.9 µs compiled (5 calls each); because `math.fsum` wants a Python number (line 7); `np.sum` would keep it compiled';
  const call = { function: 'scale', text, lines: [['<cell 7>', 9, 0, 9, 8]], seconds: 6.5e-6, calls: 5 };
  const settled = report({ ...softmax, as_python: [call] });
  assert.doesNotMatch(badgeText(report(softmax)), /Python/);
  const said = { text: `This run: scale (5 calls, 6.5 µs) ${text}`, short: 'Python 1.3 µs, compiled 1.9 µs' };
  const told = report({ ...softmax, verdict: { ...softmax.verdict, settled: said }, as_python: [call] });
  assert.match(badgeText(told), /^58\.8 ms .* · Python 1.3 µs, compiled 1.9 µs · 21\/22 compiled · /);
  assert.deepEqual(pythonRows(told), pythonRows(report(softmax))); // the verdict says it above
  const { rows, more } = pythonRows(settled);
  assert.deepEqual(rows.map(({ what, where, why }) => [what, where, why]).slice(0, 1), [
    ['scale', 'line 9, this run: Python, 5 calls, 6.5 µs', `It ${text.replaceAll('`', '')}.`]
  ]);
  assert.equal(rows.length, pythonRows(report(softmax)).rows.length + 1);
  assert.equal(more, pythonRows(report(softmax)).more);
  const many = Array.from({ length: 5 }, (_, n) => ({ ...call, seconds: n * 1e-6 }));
  assert.match(pythonRows(report({ ...softmax, as_python: many })).more, /^and 2 more functions/);
});
