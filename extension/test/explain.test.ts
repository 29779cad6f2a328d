import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterToRead, codeRows, columnsOf, isLit, sourceRows, sourcesOf } from '../src/core/sections/code/rows';
import { stageIn, stagesOf } from '../src/core/sections/code/stages';
import { tokens } from '../src/core/sections/code/tokens';
import {
  choicesOf,
  layoutComparison,
  runsText,
  samplesNote,
  timesNote,
  titleOf,
  wordOf
} from '../src/core/sections/compare/layout';
import { readAnswer, readCode, readComparison, readSweep } from '../src/core/report/answers';
import { Links } from '../src/core/report/links';
import { ledgerOf } from '../src/core/sections/retraces/layout';
import { askable, requestOf } from '../src/core/sections/whatif/ask';
import { factsOf } from '../src/core/sections/whatif/about';
import { linesBeside } from '../src/core/sections/whatif/cards';
import { writtenAs } from '../src/core/sections/whatif/view';
import {
  about,
  apart,
  keepTitle,
  layoutAnswer,
  movedRows,
  roundsNote,
  stepText,
  sweepAdvice,
  sweepRows
} from '../src/core/sections/whatif/layout';
import explained from './fixtures/explained.json';
import gpu from './fixtures/gpu.json';
import { measure, misplaced, report } from './helpers';

const json = report(explained.report);
const links = new Links(json);
const file = json.sources[0]?.file ?? '';

function program() {
  const code = readCode({ code: explained.code.find(({ stage }) => stage === 'program') });
  assert.ok(code);
  return code;
}

test('a line of the source says whose it is, and its cost once a kernel', () => {
  const [source] = sourcesOf(json);
  assert.ok(source);
  const rows = sourceRows(json, source);
  assert.equal(rows.length, source.lines.length);
  const costs = rows
    .filter(({ mark }) => /Kernel k1 of \w+, /.test(mark?.label ?? ''))
    .map(({ mark }) => mark?.cost ?? '')
    .filter(Boolean);
  assert.equal(costs.length, 1);
  assert.match(costs[0] ?? '', /\d (m|µ)?s$/);
  assert.ok(rows.some(({ mark }) => mark?.rest === 'k1' && mark.cost === ''));
});

test('noise is one row with its count until it is unfolded', () => {
  const code = program();
  const noise = code.lines.filter(line => line.noise).length;
  const rows = codeRows(code, 'cluster_0', false);
  assert.equal(rows.length, code.lines.length - noise + 1);
  assert.equal(rows.at(-1)?.text, `${noise} lines without a cell line folded`);
  assert.equal(codeRows(code, 'cluster_0', true).length, code.lines.length);
});

test('a cluster on a GPU has its stages in the place of assembly', () => {
  assert.deepEqual(stagesOf(''), ['graph', 'program', 'llvm', 'llvm-optimized', 'asm']);
  assert.deepEqual(stagesOf('/device:GPU:0'), ['graph', 'program', 'numba', 'llvm', 'ptx', 'sass']);
  assert.equal(stageIn(stagesOf('/device:GPU:0'), 'asm'), 'ptx');
  assert.equal(stageIn(stagesOf(''), 'sass'), 'asm');
  assert.equal(stageIn(stagesOf(''), 'llvm'), 'llvm');
});

test('an operation lights the lines that were made of it, and a line of code its operation and its line', () => {
  const cluster = clusterToRead(json, links, links.of('exp'), '');
  assert.ok(cluster);
  const id = links.idOf(cluster.name, cluster.plan);
  const code = program();
  const rows = codeRows(code, id, false);
  const lit = rows.filter(row => isLit(row, cluster.plan, links.of('exp'), links));
  assert.ok(lit.length > 0 && lit.length < rows.length);
  assert.ok(lit.every(row => row.code?.ops.includes('exp')));
  links.addCode('program', id, code.lines);
  const back = links.of(lit[0]?.id ?? '');
  assert.ok(back.ops.has('exp') && back.lines.has(`${file}:6`));
});

test('what is pinned stands out within its line, where its columns are told in letters', () => {
  const [source] = sourcesOf(json);
  assert.ok(source);
  const row = sourceRows(json, source).find(({ line }) => line === 6);
  const op = links.op('exp');
  assert.ok(row && op);
  const columns = columnsOf([op], row);
  assert.equal(columns && row.text.slice(...columns), 'np.exp(z)');
  assert.equal(columnsOf([op], { ...row, text: `é${row.text}` }), null);
});

test('stretches of a line are the line', () => {
  const line = 'with jl.jit_scope("a # b"):  # why 0x1f';
  const found = tokens(line, 'python');
  assert.equal(found.map(([, text]) => text).join(''), line);
  assert.deepEqual(
    found.filter(([kind]) => kind !== '').map(([kind]) => kind),
    ['keyword', 'string', 'comment']
  );
  for (const text of ['', '   ', "'", '"""', '\\', 'x'.repeat(5000)]) {
    for (const language of ['python', 'program', 'llvm', 'asm'] as const) {
      assert.equal(
        tokens(text, language)
          .map(([, part]) => part)
          .join(''),
        text
      );
    }
  }
});

test('of an operation one asks to split before it, after it, and to run it in NumPy; of a fused value to split there', () => {
  const asks = askable(json, links, 'exp')?.asks ?? [];
  assert.deepEqual(
    asks.map(ask => [ask.label, ask.kind, ask.edges, ask.ops]),
    [
      ['Split before', 'cut', [['sub', 'exp']], []],
      ['Split after', 'cut', asks[1]?.edges, []],
      ['Run in NumPy', 'keep_out', [], ['exp']]
    ]
  );
  assert.ok(asks[1]?.edges.every(([producer]) => producer === 'exp'));
  assert.deepEqual(
    asks.map(({ title }) => title),
    ['Split z from p (line 6)', 'Split Exp from Sum and RealDiv (line 6)', 'Run p in NumPy (line 6)']
  );
  const words = new Map([
    ['exp', 'e'],
    ['sub', 'X @ W - m'],
    ['realdiv', 'p']
  ]);
  const spoken = { ...json, ops: json.ops.map(op => ({ ...op, called: words.get(op.name) ?? '' })) };
  assert.deepEqual(
    askable(spoken, new Links(spoken), 'exp')?.asks.map(({ title }) => title),
    ['Split X @ W - m from e (line 6)', 'Split e from Sum and p (line 6)', 'Run e in NumPy (line 6)']
  );
  const edge = askable(json, links, 'edge:exp→sum');
  assert.deepEqual(edge?.asks[0] && requestOf(edge.asks[0], 'c4'), {
    ...{ want: 'whatif', cell: 'c4', plan: 'step #1', kind: 'cut', edges: [['exp', 'sum']], ops: [] }
  });
});

test('an answer says its lines, also of a name that has "line" in it', () => {
  assert.equal(linesBeside('Split `outline` (Exp) from Sum', [4]), 'line 4');
  assert.equal(linesBeside('Split Exp from Sum (line 4)', [4]), '');
  assert.equal(linesBeside('Run Exp in NumPy (lines 4–5)', [4, 5]), '');
});

test('of a value that is not fused one asks to fuse it', () => {
  const [boundary] = json.boundaries;
  assert.ok(boundary);
  const asked = askable(json, links, links.edgeId(boundary));
  assert.deepEqual(
    asked?.asks.map(({ kind }) => kind),
    ['fuse']
  );
  assert.match(asked.facts, /^not fused: /);
});

test('of what can be asked nothing a hint says what can', () => {
  assert.match(askable(json, links, 'k1')?.hint ?? '', /^Pin an operation/);
  assert.equal(askable(json, links, 'nothing of this report'), null);
  assert.equal(askable(json, links, null), null);
});

test('the card of an operation has its type, its bytes and what it is fused with', () => {
  const op = links.op('exp');
  assert.ok(op);
  const [[type] = ['']] = factsOf(json, links, op);
  assert.equal(type, 'f32[6000,10] → f32[6000,10]');
  const texts = factsOf(json, links, op).map(([text]) => text);
  assert.ok(texts.includes('Its value is 240 kB.'));
  assert.ok(texts.some(text => text.startsWith('Fused with Sub (line 5)')));
});

test('an answer is two bars with their intervals, and what moved', () => {
  const answer = readAnswer(explained.jobs[0]?.result);
  assert.ok(answer?.before && answer.after);
  for (const width of [200, 332, 512]) {
    assert.deepEqual(misplaced(layoutAnswer(answer.before, answer.after, width, measure)), []);
  }
  assert.deepEqual(
    movedRows(answer).map(([what]) => what),
    ['memory traffic', 'intermediate arrays', 'kernels', 'largest error']
  );
  assert.notEqual(...apart(0.00148, 0.00147));
});

test('an answer says what its times are of, and how long the cell itself took', () => {
  const answer = readAnswer({ rounds: 40, in_cell: { calls: 6, seconds: 0.033 } });
  assert.match(
    answer ? roundsNote(answer) : '',
    /^Per call, compiled part only, warm.*40 runs.*\. In the cell 6 calls took 33.0 ms/
  );
  const alone = readAnswer({ rounds: 1, in_cell: null });
  assert.match(alone ? roundsNote(alone) : '', /1 run of each, alternating; 95 % intervals\.$/);
});

test('a refusal has its path, and no figures', () => {
  const answer = readAnswer(explained.jobs.find(({ result }) => result.refusal)?.result);
  assert.ok(answer?.refusal);
  assert.ok(answer.refusal.path.length >= 2);
  assert.deepEqual([answer.before, answer.change, movedRows(answer)], [null, null, []]);
});

test('the lines that keep a change say where they go, and a step what the program calls it', () => {
  const keep = { file: '<cell 3>', first: 2, last: 4, lines: ['with jl.jit_scope(cut=("Exp", "Sum")):'] };
  const answer = readAnswer({ question: { kind: 'cut' }, keep });
  assert.equal(answer && keepTitle(answer), 'Code to make this permanent (lines 2–4 of In [3])');
  const one = readAnswer({ question: { kind: 'fuse' }, keep: { ...keep, last: 2, file: '/a/b.py' } });
  assert.equal(one && keepTitle(one), 'Code to make this permanent (line 2 of b.py)');
  const path = [{ name: 'sin', op: 'Sin', called: 't', lines: [7], cluster: '' }];
  const refused = readAnswer({ refusal: { code: 'cycle', text: '', path } });
  assert.deepEqual(refused?.refusal?.path.map(stepText), ['t · line 7, run by NumPy']);
});

test('of a sweep the cuts that can be measured are ranked, the others counted', () => {
  const sweep = readSweep(explained.jobs.find(({ kind }) => kind === 'sweep')?.result);
  assert.ok(sweep);
  const { rows, others } = sweepRows(sweep);
  assert.equal(rows.length + others, sweep.tried);
  assert.ok(rows.every(({ change }) => change.significant));
});

test('a sweep ends in one sentence of advice', () => {
  const sweep = readSweep(explained.jobs.find(({ kind }) => kind === 'sweep')?.result);
  const [edge] = sweep?.edges ?? [];
  assert.ok(sweep && edge);
  const cut = (before: number, after: number, significant = true) => ({
    ...{ ...edge, title: `Split x from y in ${after} s`, beforeSeconds: before, afterSeconds: after },
    change: { ...edge.change, ratio: after / before, significant }
  });
  const advice = (...edges: (typeof edge)[]) => sweepAdvice({ ...sweep, edges, tried: 3, total: 3 });
  assert.equal(advice(cut(4, 6), cut(4, 3), cut(4, 2)), 'Split x from y in 2 s: it saves 2.00 s in every run.');
  assert.equal(advice(cut(4, 6), cut(4, 5)), 'Keep the fusions: no split saves time, and the worst one loses 2.00 s.');
  assert.equal(advice(cut(4, 3, false)), 'Leave it: no split makes a measurable difference.');
  const part = sweepAdvice({ ...sweep, edges: [], tried: 1, total: 3 });
  assert.equal(part, 'Leave it: no split that was tried makes a measurable difference.');
});

test('an estimate has one digit', () => {
  assert.deepEqual([about(1.04), about(0.03), about(12.4)], ['about 1 s', 'about 30 ms', 'about 12 s']);
});

test('a comparison stands around same at each width', () => {
  const comparison = readComparison({ comparison: explained.comparison });
  assert.ok(comparison);
  const rows = [
    ...comparison.rows,
    { ...comparison.rows[0], name: 'a_rather_long_name_of_an_operation', change: { ratio: 9, low: 8, high: 11 } },
    { name: 'gone', kind: 'host', state: 'removed', before: 0.001, after: null, change: null, color: null }
  ].map(row => ({ ...row, change: row.change && { significant: true, word: 'slower by 800 % ± 150', ...row.change } }));
  for (const width of [330, 420, 534]) {
    const picture = layoutComparison({ ...comparison, rows } as typeof comparison, width, measure);
    assert.deepEqual(misplaced(picture), [], String(width));
  }
  assert.equal(titleOf(comparison), 'run 2 against baseline “gather first”');
  assert.equal(wordOf({ ...comparison.rows[0], change: null, state: 'added' } as never), 'new');
});

test('before there are enough runs the rows have their single times, and what is missing is said', () => {
  const needs = 'Too few timed calls to tell: 1 before and 1 now, of 3 each. Run the cell 4 more times.';
  const single = {
    ...explained.comparison,
    samples: [1, 1],
    needs: { runs: 4, text: needs },
    run: 2,
    against: { run: 1 }
  };
  const comparison = readComparison({
    comparison: { ...single, rows: explained.comparison.rows.map(row => ({ ...row, state: 'same', change: null })) }
  });
  assert.ok(comparison);
  assert.deepEqual([comparison.needs?.text, samplesNote(comparison)], [needs, '']);
  assert.ok(comparison.rows.every(row => wordOf(row) === 'too few calls to tell' && row.before && row.after));
  const sides = readComparison({
    comparison: {
      ...single,
      runs: [
        [1, 2],
        [3, 4, 6]
      ]
    }
  });
  assert.deepEqual(sides?.runs.map(runsText), ['runs 1–2', 'runs 3–4, 6']);
});

test('a comparison says that its times are of one call, where the verdict’s are of a run', () => {
  const comparison = readComparison({ comparison: { ...explained.comparison, samples: [1, 20], run: 2 } });
  assert.ok(comparison);
  const run = { seconds: 0.0428, calls: 20, fingerprint: '', retraces: 0, error: null };
  const history = { run: 2, runs: [{ ...run, run: 2 }], baselines: [] };
  assert.equal(timesNote(history, comparison), 'Times of one call, slow outliers left out; run 2 made 20 in 42.8 ms.');
  assert.equal(timesNote(null, comparison), 'Times of one call.');
  assert.match(samplesNote(comparison), /^1 timed call before, 20 now; /);
  const [choice] = choicesOf({ ...history, run: 3 });
  assert.equal(choice?.text, 'run 2, 42.8 ms in 20 calls');
});

test('one compares with the newest baseline first, then with the last run that had no error', () => {
  const run = { seconds: 0.01, calls: 1, fingerprint: '', retraces: 0, error: null };
  const runs = [
    { ...run, run: 1 },
    { ...run, run: 2, error: 'KeyError' },
    { ...run, run: 3 },
    { ...run, run: 4 }
  ];
  assert.deepEqual(
    choicesOf({ run: 4, runs, baselines: ['a', 'b'] }).map(({ value }) => value),
    ['baseline b', 'baseline a', 'before', 'run 3', 'run 1']
  );
  assert.deepEqual(choicesOf({ run: 4, runs: [{ ...run, run: 4 }], baselines: [] }), []);
  const one = choicesOf({ run: 2, runs: runs.slice(0, 1), baselines: [] });
  assert.deepEqual(one, [{ value: 'before', text: 'run 1, 10.0 ms', against: null }], 'and runs to come with it');
  const [hidden] = choicesOf({ run: 4, runs: [], baselines: ['\u202eb'] });
  assert.deepEqual([hidden?.text, hidden?.against], ['baseline “\\u202eb”', { baseline: '\u202eb' }]);
});

test('an entry says where its time went, what did not change, and that it was never used again', () => {
  const [entry] = ledgerOf(json).entries;
  assert.ok(entry);
  const parts = entry.spent.reduce((total, { seconds }) => total + seconds, 0);
  assert.ok(Math.abs(parts - entry.seconds) < 1e-9);
  assert.deepEqual([entry.changes[0]?.argument, entry.sameCount, entry.same[0]?.[0]], ['lr', 3, 'X']);
  assert.match(entry.badge, /^each trace ran once$|^\d+ of \d+ traces ran once$/);
  assert.match(entry.site, /^called from In \[\d+\], line 3$/);
});

test('what came malformed is empty, never an error', () => {
  for (const junk of [undefined, null, 3, 'x', [], {}, { code: [] }, { comparison: 1 }, { error: 'no' }]) {
    assert.equal(readCode(junk), null);
    assert.equal(readComparison(junk), null);
  }
  const odd = { lines: [{ text: 3, at: [[1, 'x']], ops: {} }, 4], share: 'much' };
  assert.equal(readCode({ code: odd })?.lines.length, 1);
  assert.deepEqual(readAnswer({ before: 1, refusal: { path: [null] }, keep: [] })?.refusal?.path, []);
  assert.equal(readSweep({ edges: 'all' })?.edges.length, 0);
  assert.equal(readComparison({ comparison: { rows: [{}], samples: 'x' } })?.rows[0]?.state, 'same');
});

test('the text of a cell is its own sources, so an answer about other lines can be told', () => {
  const of = (...lines: string[]): string =>
    writtenAs(
      report({
        version: 1,
        cell: { id: 'a' },
        sources: [
          { file: 'In [1]', cell: 'a', lines },
          { file: 'm.py', cell: null, lines: ['def f(x):'] }
        ]
      })
    );
  assert.equal(of('x = 1', 'y = 2'), 'x = 1\ny = 2');
  assert.notEqual(of('x = 1'), of('x = 2'));
  assert.equal(writtenAs(report({ version: 1 })), '');
});

test('a cluster can be asked to run on the other processor, and the refusal is a prediction', () => {
  const onGpu = report(gpu.report);
  const [cluster] = onGpu.clusters;
  const asked = askable(onGpu, new Links(onGpu), cluster?.name ?? '')?.asks[0];
  assert.equal(asked?.title, 'Run on the processor: all of In [3] #1');
  const other = report(gpu.on_processor);
  const ask = askable(other, new Links(other), other.clusters[0]?.name ?? '')?.asks[0];
  assert.ok(ask);
  const wanted = { want: 'whatif', cell: 'c4', plan: 'In [5] #1', kind: 'target', edges: [], ops: [], target: 'gpu' };
  assert.deepEqual(requestOf(ask, 'c4'), wanted);
  const answer = readAnswer(gpu.jobs[0]?.result);
  assert.match(answer?.refusal?.text ?? '', /^No GPU can be used here.* A prediction for an H100: /);
});
