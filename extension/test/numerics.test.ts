import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flowOf } from '../src/core/sections/clusters/flow';
import { layoutClusters } from '../src/core/sections/clusters/layout';
import { memoryRows } from '../src/core/sections/clusters/memory';
import { clusterFacts, nodeLabel } from '../src/core/sections/clusters/words';
import { readCode } from '../src/core/report/answers';
import { absorbedText } from '../src/core/sections/code/stages';
import { checkedHead, checkedTexts, closeness, ulps, worstRows } from '../src/core/report/numerics';
import { records } from '../src/core/base/read';
import { readChecked } from '../src/core/report/records';
import explained from './fixtures/explained.json';
import { measure, misplaced, report, texts } from './helpers';

const readNumerics = (rows: unknown) => records(rows).map(readChecked);
const json = report(explained.report);

const row = {
  ...{ cluster: 'cluster_0', plan: 'step #1', output: 'div', op: 'RealDiv', lines: [7], max_abs: 1e-6, max_ulp: 5.2 },
  ...{ bound_ulp: 40, ok: true, differing: 3, note: '', guilty: null }
};
const guilty = { edge: ['exp', 'sum'], rewrite: 'x', runs: 3, text: 'Fusing exp with sum made it so.' };

test('how near a cluster is to NumPy is one clause, and never less than what was found', () => {
  const same = { ...row, max_ulp: 0, max_abs: 0, differing: 0 };
  const wrong = { ...row, ok: false, max_ulp: 5000, guilty };
  const said = (...rows: object[]) => closeness(readNumerics(rows));
  assert.deepEqual(
    [said(), said(same), said(row, same), said({ ...row, max_ulp: 12.1 }), said(wrong), said(wrong, row)],
    [
      '',
      'the same bits as NumPy',
      'within 5.2 ULP of NumPy',
      'within 13 ULP of NumPy',
      'out of bounds of NumPy',
      '1 of 2 outputs out of bounds'
    ]
  );
  assert.deepEqual([ulps(6), ulps(6.01), ulps(12345.2), ulps(3e9)], ['6 ULP', '6.1 ULP', '12,346 ULP', '3.0e+9 ULP']);
});

test('an output that is out of bounds says who made it so', () => {
  const [wrong] = readNumerics([{ ...row, ok: false, max_ulp: 5000, guilty }]);
  assert.ok(wrong);
  assert.deepEqual(checkedTexts(wrong), {
    name: 'RealDiv',
    where: 'line 7 · cluster_0',
    off: '5,000 ULP, 40 ULP allowed',
    why: 'Fusing exp with sum made it so.'
  });
  assert.equal(checkedHead([wrong]), '1 of 1 output outside its bound beside NumPy');
});

test('error and bound are of the same element, the nearest to its bound', () => {
  const near = { index: [3], abs: 1e-9, rel: 1e-3, ulp: 2, bound_abs: 1e-8, bound_ulp: 40 };
  const [found] = readNumerics([{ ...row, max_ulp: 238006, cancels: true, nearest: near }]);
  assert.ok(found);
  assert.equal(checkedTexts(found).off, '2 ULP, 40 ULP allowed; within 238,006 ULP of NumPy');
  assert.equal(checkedHead([found, found]), 'all 2 outputs within their bounds beside NumPy');
  const [loose] = readNumerics([{ ...row, called: 'z', max_ulp: 2, bound_ulp: null }]);
  assert.ok(loose);
  assert.equal(checkedHead([found, loose]), '1 output within bounds beside NumPy, 1 without a stated bound');
  assert.deepEqual([checkedTexts(loose).name, checkedTexts(loose).off], ['z', '2 ULP, no bound is stated']);
});

test('of alike plans the worst of each output stands for the others', () => {
  const plans = [
    { name: 'step #1', like: 'step #1' },
    { name: 'step #2', like: 'step #1' }
  ];
  const rows = readNumerics([row, { ...row, plan: 'step #2', max_ulp: 9 }, { ...row, plan: 'step #2', output: 'neg' }]);
  assert.deepEqual(
    worstRows(rows, plans).map(({ plan, output }) => [plan, output]),
    [
      ['step #2', 'div'],
      ['step #2', 'neg']
    ]
  );
});

test('a box says how near its numbers are, and how many arrays it stores', () => {
  const counted = { ...json, temporaries: json.temporaries.map(value => ({ ...value, counted: true })) };
  const cluster = flowOf(counted).parts[0]?.nodes.find(node => node.cluster !== null);
  assert.ok(cluster && cluster.checked.length > 0);
  assert.match(clusterFacts(cluster), /\d+ intermediate arrays stored, [\d.]+ [kM]B · within [\d.]+ ULP of NumPy$/);
  const wrong = { ...cluster, checked: cluster.checked.map(checked => ({ ...checked, ok: false })) };
  assert.doesNotMatch(clusterFacts(wrong), /NumPy/);
  assert.match(nodeLabel(wrong), /out of bounds/);
  const picture = layoutClusters(
    { parts: [{ title: '', place: '', nodes: [wrong], edges: [] }], statements: [], seconds: 1 },
    { width: 228, measure, open: new Set(), linked: null }
  );
  assert.deepEqual(misplaced(picture), []);
  assert.ok(picture.shapes.some(shape => shape.shape === 'words' && shape.ink === 'slower'));
  assert.ok(texts(picture).length > 3);
});

test('values that reach memory stand with size and reason, those that the verdict counts, the largest first', () => {
  const stored = { text: '2 intermediate arrays are stored, 3.0 MB a call', count: 2, bytes: 3e6 };
  const counted = json.temporaries.slice(0, 2).map(value => ({ ...value, counted: true }));
  const { head, rows, more } = memoryRows({
    ...json,
    verdict: { ...json.verdict, stored },
    temporaries: [...counted, ...json.temporaries.slice(2)]
  });
  assert.deepEqual([head, rows.length, more], [stored.text, 2, '']);
  const sizes = rows.map(({ value }) => value.bytes);
  assert.deepEqual(
    sizes,
    [...sizes].sort((a, b) => b - a)
  );
  assert.ok(rows.every(({ why, where }) => why.endsWith('.') && where.includes('line')));
});

test('of very many values that reach memory the largest are listed, the others counted', () => {
  const many = Array.from({ length: 30 }, (_, at) => ({
    plan: 'p',
    name: `t${at}`,
    bytes: 1000 * at,
    consumers: ['a'],
    counted: true
  }));
  const stored = { text: '', count: 30, bytes: 435000 };
  const { rows, more } = memoryRows(report({ version: 1, temporaries: many, verdict: { stored } }));
  assert.deepEqual([rows.length, rows[0]?.name, more], [20, 't29 → a', 'and 10 smaller values, 45.0 kB together']);
});

test('operations without a line of their own are one line', () => {
  const absorbed = [{ op: 'max', into: ['sub'], text: 'max has no line' }, 4, { op: 'neg', into: 'x' }];
  const code = readCode({ code: { lines: [], absorbed } });
  assert.ok(code);
  assert.equal(absorbedText(code.absorbed), '2 operations are in other lines: max, neg');
  assert.deepEqual(readCode({ code: { absorbed: 'all' } })?.absorbed, []);
});

test('numbers that came malformed are empty, never an error', () => {
  for (const junk of [null, 3, 'x', {}, [3], [{ lines: 'all', guilty: [], max_ulp: 'many' }]]) {
    assert.ok(readNumerics(junk).every(({ ok, guilty: found }) => !ok && found === null));
  }
});
