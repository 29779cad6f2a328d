import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idText, Links, planText } from '../src/core/report/links';
import { Selection } from '../src/core/panel/selection';
import line from './fixtures/line.json';
import softmax from './fixtures/softmax.json';
import { report } from './helpers';

const links = new Links(report(softmax));

test('an operation brings its kernel, its cluster, its line and the values it reads and makes', () => {
  const { kind, ops, kernels, clusters, lines, edges } = links.of('exp');
  assert.equal(kind, 'op');
  assert.deepEqual([[...ops], [...kernels], [...clusters]], [['exp'], ['k0'], ['cluster_0']]);
  assert.deepEqual([...lines], ['<cell 7>:5']);
  assert.ok(edges.has('edge:sub→exp') && edges.has('edge:exp→sum'));
});

test('a line brings all operations that came from it', () => {
  const { ops, kernels, lines } = links.of('line:<cell 7>:6');
  assert.deepEqual([[...ops], [...kernels], [...lines]], [['sum', 'div'], ['k0'], ['<cell 7>:6']]);
});

test('a kernel brings its lines, and not those of its cluster', () => {
  const { kind, lines, kernels } = links.of('k1');
  assert.deepEqual([kind, [...kernels], [...lines]], ['kernel', ['k1'], ['<cell 7>:7']]);
  assert.deepEqual([...links.of('cluster_0').kernels], ['k0', 'k1']);
});

test('an edge brings its two ends', () => {
  const { kind, ops } = links.of('edge:div→take');
  assert.deepEqual([kind, [...ops]], ['edge', ['div', 'take']]);
});

test('what no report knows links nothing', () => {
  for (const id of ['', 'gone', 'edge:a→b', 'line:nowhere:1', 'code:asm:1@cluster_9', 'line:', 'code:']) {
    const { ops, kernels } = links.of(id);
    assert.deepEqual([ops.size, kernels.size], [0, 0], id);
  }
});

test('a line of assembly links what it says it came from', () => {
  links.addCode('asm', 'cluster_0', [
    { at: [], ops: [], kernel: null },
    {
      at: [
        { file: '<cell 7>', line: 5 },
        { file: '<cell 7>', line: 4 }
      ],
      ops: ['exp'],
      kernel: 'k0'
    }
  ]);
  const { kind, ops, lines, kernels } = links.of('code:asm:2@cluster_0');
  assert.deepEqual([kind, [...ops], [...lines], [...kernels]], ['code', ['exp'], ['<cell 7>:5', '<cell 7>:4'], ['k0']]);
});

test('the same name in two plans is two things, in two traces of one plan it is one', () => {
  const json = report(line);
  const [plan] = json.plans;
  assert.ok(plan);
  const twice = (name: string, like: string) => ({
    ...json,
    plans: [plan, { ...plan, name, like }],
    ops: [...json.ops, ...json.ops.map(op => ({ ...op, plan: name }))],
    kernels: json.kernels.flatMap(kernel => [
      { ...kernel, plan: plan.name },
      { ...kernel, plan: name }
    ]),
    clusters: [...json.clusters, ...json.clusters.map(cluster => ({ ...cluster, plan: name }))]
  });
  const apart = new Links(twice('g #1', 'g #1'));
  assert.equal(apart.idOf('mul', 'g #1'), 'mul@g #1');
  assert.deepEqual([...apart.of('mul@g #1').kernels], ['k0@g #1']);
  assert.equal(apart.of('mul').kind, 'none');
  assert.equal(idText(apart, 'k0@g #1'), 'k0 of In [2], part 2');
  const alike = new Links(twice('In [2] #2', plan.name));
  assert.equal(alike.idOf('mul', 'In [2] #2'), 'mul');
});

test('a plan is called by its function, or by which part of the cell it is, whatever number the cell had before', () => {
  const json = report(line);
  const [plan] = json.plans;
  assert.ok(plan);
  const named = (title: string, ...plans: [string, string, number, string?][]): string[] => {
    const all = plans.map(([name, of, trace, like = '']) => ({ ...plan, name, function: of, trace, like }));
    return plans.map(([name]) => planText({ ...json, cell: { ...json.cell, title }, plans: all }, name));
  };
  assert.deepEqual(named('In [5]', ['In [2] #1', 'In [2]', 1]), ['In [5]']);
  assert.deepEqual(named('In [5]', ['In [2] #2', 'In [2]', 2], ['In [2] #3', 'In [2]', 3], ['f #1', 'f', 1]), [
    'In [5], part 1',
    'In [5], part 2',
    'f'
  ]);
  assert.deepEqual(named('In [5]', ['f #1', 'f', 1], ['f #2', 'f', 2, 'f #1'], ['f #3', 'f', 3]), [
    'f, trace 1',
    'f, trace 2',
    'f, trace 3'
  ]);
  assert.equal(planText(json, 'of a newer report'), 'of a newer report');
});

test('a pin outlives a new report of its cell that knows it, and no other', () => {
  const selection = new Selection();
  selection.show(report(softmax));
  selection.togglePin('exp');
  selection.show(report(softmax));
  assert.equal(selection.pin, 'exp');
  assert.deepEqual([...(selection.lit?.kernels ?? [])], ['k0']);
  selection.show(report(line));
  assert.equal(selection.pin, null);
});
