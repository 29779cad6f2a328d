import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterCount, flowOf, slowest } from '../src/core/sections/clusters/flow';
import { layoutClusters } from '../src/core/sections/clusters/layout';
import { heatOf, type HeatKind } from '../src/core/sections/clusters/map/heat';
import { memoryRows } from '../src/core/sections/clusters/memory';
import { layoutOperations } from '../src/core/sections/clusters/operations';
import { boundaryTexts, describe, kernelFacts, kernelLabel, launchText } from '../src/core/sections/clusters/words';
import { bytes, duration } from '../src/core/base/format';
import type { Boundary, Report } from '../src/core/report/report';
import { callsOf } from '../src/core/sections/verdict/more';
import gpu from './fixtures/gpu.json';
import line from './fixtures/line.json';
import softmax from './fixtures/softmax.json';
import { measure, misplaced, report, texts } from './helpers';
import { hugeReport } from './huge';

const EVERYTHING = new Set(['cluster_0', 'cluster_1']);

function layout(json: Report, width: number, open: ReadonlySet<string> = EVERYTHING) {
  return layoutClusters(flowOf(json), { width, measure, open, linked: null });
}

test('boxes stand in program order, the host between its clusters', () => {
  const [part] = flowOf(report(softmax)).parts;
  assert.ok(part);
  assert.deepEqual(
    part.nodes.map(node => node.name),
    ['cluster_0', 'ArgPartition', 'cluster_1']
  );
  assert.deepEqual(
    part.edges.map(edge => [edge.from, edge.to, edge.name]),
    [
      [0, 1, 'Neg'],
      [1, 2, 'ArgPartition'],
      [0, 2, 'RealDiv']
    ]
  );
});

test('what did not fuse stands before the kernel that reads it, or at its box', () => {
  const [part] = flowOf(report(softmax)).parts;
  assert.ok(part);
  assert.deepEqual(
    part.nodes[0]?.kernels[1]?.boundaries.map(boundary => boundary.consumer),
    ['take']
  );
  const apart = part.nodes.map(node => node.boundaries.map(boundary => boundary.consumer));
  assert.deepEqual(apart, [['sub_1'], [], []]);
});

test('clusters that were kept apart are told so at the first, whatever they are called', () => {
  const named = JSON.stringify(softmax).replaceAll('cluster_1', 'cluster_10').replaceAll('cluster_0', 'cluster_1');
  const [part] = flowOf(report(JSON.parse(named))).parts;
  assert.deepEqual(
    part?.nodes.map(({ name, boundaries }) => [name, boundaries.length]),
    [
      ['cluster_1', 1],
      ['ArgPartition', 0],
      ['cluster_10', 0]
    ]
  );
});

test('a boundary says bytes once, why, and what would flip it', () => {
  const [boundary] = report(softmax).boundaries;
  assert.ok(boundary);
  assert.deepEqual(boundaryTexts(boundary), {
    head: 'Not fused: p is stored, 2.4 MB',
    why: 'Take may read any row of p, because rows is an index array (line 7).',
    flip: 'Would fuse if p were read by np.take_along_axis(p, y[:, None], 1).'
  });
});

test('edges of one reason are one line with their count, and small values are counted', () => {
  const told = '2 results of np.fft must be complete before the next loop, 3.6 MB';
  const [edge] = softmax.boundaries;
  const also = { ...edge, producer: 'exp', bytes: 8 };
  const linesOf = (...boundaries: object[]): string[] =>
    texts(layout(report({ ...softmax, boundaries }), 900)).map(({ text }) => text);
  const shown = linesOf({ ...edge, told }, { ...also, told }, { ...also, producer: edge?.producer, small: true });
  assert.equal(shown.filter(text => text === `Not fused: ${told}`).length, 1);
  assert.ok(!shown.some(text => text.startsWith('Not fused: p is stored')));
  assert.ok(shown.includes('and 1 smaller value'));
  assert.ok(!linesOf({ ...edge, told }).some(text => text.includes('smaller')));
});

test('a text is split where its decision says, never at what is in a name of the program', () => {
  const text = 't["a. b: 3 MB"] needs all elements';
  const textsOf = (version: number, parts: object): unknown[] => {
    const [boundary] = softmax.boundaries;
    const reason = { code: 'whole_reduction', text, ...parts };
    const temporaries = [
      { name: 'exp', plan: 'step #1', reason, bytes: 12000, consumers: [], lines: [], counted: true }
    ];
    const read = report({ ...softmax, version, boundaries: [{ ...boundary, bytes: 12000, reason }], temporaries });
    const { head, why } = boundaryTexts(read.boundaries[0] as Boundary);
    return [head, why, memoryRows(read).rows[0]?.why];
  };
  assert.deepEqual(textsOf(3, {}), [`Not fused: ${text}, 12.0 kB`, '', `${text}.`]);
  const two = { text: `${text}; it is 12 kB`, clause: text, rest: 'it is 12 kB', size_in: 'rest' };
  assert.deepEqual(textsOf(3, two), [`Not fused: ${text}`, 'it is 12 kB.', `${text}.`]);
  for (const version of [1, 2]) {
    assert.deepEqual(textsOf(version, { text: 'p is read again. Take may read; any row' }), [
      'Not fused: p is read again, 12.0 kB',
      'Take may read; any row.',
      'p is read again.'
    ]);
    assert.equal(textsOf(version, { text: 'a library call; p is 12 kB' })[0], 'Not fused: a library call');
  }
});

for (const width of [228, 368, 548]) {
  test(`a name without a space is broken where its box ends at ${width} pixels`, () => {
    const json = report(softmax);
    const name = `params${'____self_attention'.repeat(6)}`;
    const boundaries = json.boundaries.map(boundary => ({
      ...boundary,
      flip: { code: '', text: `Take were ${name}.T) + 1` }
    }));
    const picture = layout({ ...json, boundaries }, width);
    assert.deepEqual(misplaced(picture), []);
    assert.ok(
      picture.shapes
        .filter(shape => shape.shape === 'words' && shape.ink === 'link')
        .map(shape => (shape as { text: string }).text)
        .join('')
        .includes(name)
    );
  });

  test(`no text stands on another or outside at ${width} pixels`, () => {
    for (const json of [softmax, line]) {
      assert.deepEqual(misplaced(layout(report(json), width)), []);
    }
  });
}

test('names, times and reasons are never dropped, however narrow', () => {
  const shown = texts(layout(report(softmax), 228))
    .map(area => area.text)
    .join(' ');
  for (const needed of [
    'cluster_0',
    '32.9 ms',
    'k0',
    '31.7 ms',
    'ArgPartition',
    'jitlab cannot compile it',
    'Not fused: p is stored',
    'RealDiv'
  ]) {
    assert.ok(shown.includes(needed), needed);
  }
});

test('by bytes each box says its bytes in place of its time', () => {
  const flow = flowOf(report(softmax));
  const bold = (kind: HeatKind): string[] =>
    layoutClusters(flow, {
      ...{ width: 368, measure, open: EVERYTHING, linked: null, heat: heatOf(kind, flow) }
    }).shapes.flatMap(shape => (shape.shape === 'words' && shape.type === 'name' ? [shape.text] : []));
  const [byTime, byBytes] = [bold('time'), bold('bytes')];
  const { clusters, kernels } = report(softmax);
  for (const { name, seconds, bytesRead, bytesWritten } of [...clusters, ...kernels]) {
    const each = kernels.some(kernel => kernel.name === name) ? ' a call' : ''; // times are of all six
    const [time, size] = [duration(seconds ?? 0), bytes(bytesRead + bytesWritten) + each];
    assert.ok(byTime.includes(time) && !byTime.includes(size), name);
    assert.ok(byBytes.includes(size) && !byBytes.includes(time), name);
  }
});

test('no arrow crosses an operation: past whole rows it goes at their left', () => {
  const op = (name: string, at: number, ...inputs: string[]) => ({
    ...{ name, inputs, kernel: 'k0', plan: 'In [7] #1', op: 'Add', cluster: 'cluster_0', written: name, called: '' },
    ...{ word: name, parent: '', side: '', loop: '', iterations: null, endsEarly: false, scope: '', reason: null },
    ...{ lines: [{ line: at }], shape: [8], dtype: 'float64', seconds: null }
  });
  const ops = [op('one', 1), op('two', 2, 'one'), op('three', 3, 'two'), op('four', 4, 'one', 'three')];
  const { shapes, items } = layoutOperations(ops as never, {
    ...{ x: 10, y: 0, width: 300, isHost: false, level: 3, measure, linked: null, open: new Set<string>() },
    idOf: name => name
  });
  const left = Math.min(...items.map(({ x }) => x));
  const far = shapes.flatMap(shape => (shape.shape === 'stroke' && shape.path.includes('H') ? [shape.path] : []));
  assert.equal(far.length, 1);
  const [, y1, down, lane, y2] = /^M[\d.]+ ([\d.]+)v([\d.]+)H([\d.]+)V([\d.]+)H/.exec(far[0] ?? '')?.map(Number) ?? [];
  assert.ok((lane ?? left) < left);
  for (const y of [(y1 ?? 0) + (down ?? 0), y2 ?? 0]) {
    assert.ok(
      items.every(item => y < item.y || y > item.y + item.height),
      `a row is crossed at ${y}`
    );
  }
});

test('every box, kernel, operation and unfused edge can be reached by keyboard', () => {
  const { items } = layout(report(softmax), 368);
  const count = (kind: string) => items.filter(item => item.kind === kind).length;
  assert.deepEqual(
    [count('cluster'), count('host'), count('kernel'), count('op'), count('boundary')],
    [2, 1, 4, 21, 2]
  );
  assert.equal(
    items[0]?.label,
    'cluster_0, lines 3–7, 32.9 ms. 10 operations, 2 kernels, 6 calls of 5.5 ms, reads 191 MB, writes 2.6 MB a call. Separate from cluster_1, 2.4 MB.'
  );
});

test('traces that came to the same plan are one part', () => {
  const json = structuredClone(line) as { ops: { plan: string }[]; plans: object[] };
  json.plans.push({ name: 'In [2] #2', function: 'In [2]', trace: 2, like: 'In [2] #1' });
  json.ops.push(...json.ops.map(op => ({ ...op, plan: 'In [2] #2' })));
  const flow = flowOf(report(json));
  assert.equal(flow.parts.length, 1);
  assert.equal(flow.parts[0]?.title, 'In [2], traces 1–2: the same plan');
});

test('of traces that came to the same plan all calls are counted, and a saved report has their names alone', () => {
  const json = structuredClone(line) as {
    ops: { plan: string }[];
    plans: object[];
    clusters: { plan: string; calls: number }[];
    kernels: { plan?: string }[];
  };
  const calls = callsOf(report(json));
  json.plans.push({ name: 'In [2] #2', function: 'In [2]', trace: 2, like: 'In [2] #1' });
  assert.equal(flowOf(report(json)).parts[0]?.title, 'In [2], traces 1–2: the same plan');
  assert.equal(callsOf(report(json)), calls);
  const again = <T extends object>(entries: T[]): T[] => entries.map(entry => ({ ...entry, plan: 'In [2] #2' }));
  json.ops.push(...again(json.ops));
  json.kernels.push(...again(json.kernels));
  json.clusters.push(...again(json.clusters));
  assert.equal(callsOf(report(json)), 2 * calls);
});

test('clusters of traces that came to the same plan are counted once, and the traces are said', () => {
  const json = structuredClone(line) as { plans: { name: string; like?: string }[]; clusters: { plan: string }[] };
  const count = clusterCount(report(json));
  assert.match(count, /^\d+ clusters?$/);
  for (const trace of [2, 3]) {
    json.plans.push({ ...json.plans[0], name: `In [2] #${trace}`, like: 'In [2] #1' });
    json.clusters.push(...json.clusters.slice(0, 1).map(cluster => ({ ...cluster, plan: `In [2] #${trace}` })));
  }
  assert.equal(clusterCount(report(json)), `${count}, ${json.plans.length} traces`);
});

test('a box comes after what it reads, also where its first operation comes before', () => {
  const op = (name: string, cluster: string | null, inputs: string[]) => ({
    name,
    plan: 'p',
    op: name,
    cluster,
    inputs,
    lines: []
  });
  const json = {
    version: 1,
    ops: [op('a', 'cluster_0', []), op('b', 'cluster_1', []), op('c', 'cluster_0', ['b']), op('d', null, ['c'])],
    plans: [{ name: 'p', function: 'f', trace: 1 }]
  };
  const [part] = flowOf(report(json)).parts;
  assert.ok(part);
  assert.deepEqual(
    part.nodes.map(node => node.name),
    ['cluster_1', 'cluster_0', 'd']
  );
  assert.deepEqual(
    part.edges.map(edge => [edge.from, edge.to]),
    [
      [0, 1],
      [1, 2]
    ]
  );
});

test('what Python ran stands below, with its reason', () => {
  const statements = [
    { text: 'print(loss)', reason: { code: 'effect', text: 'print writes to the screen' }, lines: [['<cell 1>', 4]] }
  ];
  const picture = layout(report({ ...line, statements }), 368);
  const last = picture.items.at(-1);
  assert.equal(last?.label, 'print(loss). Run by Python, line 4: print writes to the screen.');
  assert.deepEqual(misplaced(picture), []);
});

test('of very many boxes the slowest are shown', () => {
  const part = slowest(flowOf(report(hugeReport(50_000))), 12);
  assert.equal(part.of, 44);
  assert.ok(part.shown < 44 && part.share >= 0.94, `${part.shown} ${part.share}`);
});

test('of fifty thousand operations only what is shown is laid out', () => {
  const json = report(hugeReport(50_000));
  let measured = 0;
  const counting: typeof measure = (...what) => {
    measured += 1;
    return measure(...what);
  };
  const { flow } = slowest(flowOf(json), 12);
  const { shapes } = layoutClusters(flow, {
    width: 380,
    measure: counting,
    open: new Set(['cluster_0']),
    linked: null
  });
  assert.ok(shapes.length < 5000, `${shapes.length} shapes`);
  assert.ok(measured < 100_000, `${measured} texts measured`);
});

test('the labels of values that go a long way leave room for one another', () => {
  const flow = flowOf(report(softmax));
  const [part] = flow.parts;
  const node = part?.nodes[0];
  assert.ok(part && node);
  const nodes = Array.from({ length: 8 }, (_, index) => ({ ...node, id: `${node.id}${index}` }));
  const edges = [2, 3, 4, 5, 6, 7].map(to => ({ from: 0, to, name: `value_${to}`, bytes: 8000, more: 0 }));
  const json = { ...flow, parts: [{ ...part, nodes, edges }] };
  const picture = layoutClusters(json, { width: 536, measure, open: new Set<string>(), linked: null });
  const upright = picture.shapes.filter(shape => shape.shape === 'words' && shape.upright === true);
  assert.ok(upright.length >= 3, 'one a lane at least');
  assert.deepEqual(misplaced({ ...picture, shapes: upright }), []);
});

test('a summary says of a box what the whole report would: how much is in it, and what passes between boxes', () => {
  const whole = report(softmax);
  const sent: Report = {
    ...whole,
    ops: whole.ops.filter(
      ({ name, cluster }, index) =>
        cluster === null || whole.ops.findIndex(op => op.cluster === cluster) === index || name === ''
    ),
    kernels: whole.kernels.slice(0, 1),
    clusters: whole.clusters.map(cluster => ({ ...cluster, ops: cluster.ops.slice(0, 1) })),
    temporaries: [],
    summary: {
      ...{ ops: whole.ops.length, boundaries: 0, spans: 0, kernels: 1, kernelSeconds: 1, clusters: new Map() },
      temporaries: [{ plan: 'train #1', cluster: 'cluster_0', count: 3, bytes: 30, inside: 2, insideBytes: 20 }].map(
        row => ({
          ...row,
          plan: whole.ops[0]?.plan ?? ''
        })
      ),
      edges: [{ plan: whole.ops[0]?.plan ?? '', producer: 'cluster_0', consumer: 'cluster_1', count: 2, bytes: 99 }]
    }
  };
  const [all] = flowOf(whole).parts;
  const [part] = flowOf(sent).parts;
  assert.deepEqual(
    part?.nodes.map(({ name, count, kernelCount }) => [name, count, kernelCount]),
    all?.nodes.map(({ name, count, kernelCount }) => [name, count, kernelCount])
  );
  assert.ok(part);
  assert.deepEqual(part.nodes[0]?.reaching, { count: 2, bytes: 20 });
  assert.ok(
    part.edges.some(({ from, to, name, bytes }) => from === 0 && to === 2 && name === '2 values' && bytes === 99)
  );
});

test('a kernel faster than memory is told without a rate that memory cannot have', () => {
  const kernel = flowOf(report(softmax)).parts[0]?.nodes[0]?.kernels[0];
  assert.ok(kernel);
  assert.match(kernelFacts(kernel, true)[0], / of peak · .+\/s$/);
  const cached = { ...kernel, kernel: { ...kernel.kernel, bound: 'cache', ofPeak: null } };
  assert.equal(kernelFacts(cached, true)[0], 'in cache');
});

test('an operation, the value on an arrow and one in memory are called as the program calls them', () => {
  const called = (name: string): string => ({ div: 'p', neg: 'loss' })[name] ?? '';
  const json = report({
    ...softmax,
    ops: softmax.ops.map(op => ({ ...op, called: called(op.name), written: 'x / y' }))
  });
  const op = json.ops.find(({ name }) => name === 'div');
  assert.match(op ? describe(op) : '', /^p = x \/ y, line 6, k0/);
  const names = flowOf(json).parts.flatMap(({ edges }) => edges.map(({ name }) => name));
  assert.ok(names.includes('loss') && !names.includes('neg'));
  const memory = memoryRows({
    ...json,
    temporaries: [
      {
        ...{ plan: op?.plan ?? '', name: 'div', cluster: 'cluster_0', consumers: ['take', 'neg'], bytes: 8, lines: [] }
      }
    ].map(value => ({
      ...value,
      producer: 'div',
      consumerLines: [],
      place: 'scratch',
      counted: true,
      reason: { code: '', text: '', clause: '', rest: '', sizeIn: '' }
    }))
  });
  assert.deepEqual(
    memory.rows.map(({ name }) => name),
    ['p → x / y, loss']
  );
});

test('a kernel on a GPU says what it was launched with, spills only where there are any, and that it was simulated', () => {
  const [kernel] = report(gpu.report).kernels;
  assert.ok(kernel);
  assert.equal(launchText(kernel), 'simulated GPU · 8 blocks of 256 threads');
  const [launch] = kernel.launches ?? [];
  assert.ok(launch);
  const real = { ...launch, grid: [7, 2], registers: 40, sharedBytes: 2048, spilledBytes: 0, simulated: false };
  const full = { ...real, occupancy: 0.75, limitedBy: 'registers' };
  const said = '7 × 2 blocks of 256 threads · 40 registers · 2.0 kB shared · 75 % occupancy, limited by registers';
  assert.equal(launchText({ ...kernel, launches: [full] }), said);
  const spills = { ...full, spilledBytes: 16 };
  assert.equal(launchText({ ...kernel, launches: [launch, spills] }), `${said} · 16 B a thread spilled · 2 launches`);
  const [part] = flowOf(report(gpu.report)).parts[0]?.nodes[0]?.kernels ?? [];
  assert.ok(part);
  assert.match(kernelLabel(part), /^Kernel k0, lines 2–3, [\d.]+ (ms|µs), simulated\. .*simulated GPU, 8 blocks/);
  assert.doesNotMatch(kernelLabel({ ...part, kernel: { ...kernel, launches: [full] } }), /simulated/);
  for (const width of [260, 420, 700]) {
    const flow = flowOf(report(gpu.report));
    const open = new Set(flow.parts.flatMap(({ nodes }) => nodes.map(({ id }) => id)));
    const picture = layoutClusters(flow, { width, measure, open, linked: null, idOf: name => name });
    assert.deepEqual(misplaced(picture), []);
    const whole = texts(picture).map(({ text }) => text).join(' '); // prettier-ignore
    assert.match(whole, /simulated GPU · 8 blocks of/);
    assert.match(whole, / (ms|µs), simulated/);
  }
});
