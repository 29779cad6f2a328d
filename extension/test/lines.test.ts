import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flowOf } from '../src/core/sections/clusters/flow';
import { clusterMark, HOLLOW } from '../src/core/base/shapes';
import { badgeText } from '../src/core/panel/badge';
import { editsOf } from '../src/core/report/edits';
import { cellOfFile, lineMarks, restText, spanText } from '../src/core/sections/code/lines';
import line from './fixtures/line.json';
import softmax from './fixtures/softmax.json';
import { report } from './helpers';

test('the badge says what compiled, on what and how long, and leaves out what is zero', () => {
  assert.equal(
    badgeText(report(softmax)),
    '58.8 ms · NumPy 287 ms · 21/22 compiled · 4 kernels · 1 by NumPy · 6 retraces'
  );
  assert.doesNotMatch(badgeText(report(line)), /host|retrace/);
});

test('a kernel over several lines costs once, for all of them: the others say with which line', () => {
  const marks = new Map(lineMarks(report(softmax)).map(mark => [mark.line, mark]));
  const told = [3, 4, 5, 6].map(at => marks.get(at)).filter(mark => mark !== undefined);
  assert.deepEqual(
    told.map(mark => [mark.name, mark.cost, spanText(mark), restText(mark)]),
    [
      ['k0', '31.7 ms', 'lines 3–6', ''],
      ['', '', '', 'k0 with line 3'],
      ['', '', '', 'k0 with line 3'],
      ['', '', '', 'k0 with line 3']
    ]
  );
  assert.equal(told[0]?.label, 'Kernel k0 of cluster_0, one loop over lines 3–6, 31.7 ms.');
  assert.equal(marks.get(3)?.color, 0);
  assert.equal(marks.get(10)?.color, 1);
  assert.deepEqual(marks.get(10)?.changed, ['lr']);
});

test('a line that a cluster and the host share has both marks', () => {
  const mark = lineMarks(report(softmax)).find(({ line: at }) => at === 8);
  assert.deepEqual([mark?.host, mark?.color], [true, 1]);
  assert.match(mark?.label ?? '', /ArgPartition runs in NumPy/);
});

test('a line in which several kernels begin costs their sum, and says what each takes', () => {
  const position = ['<cell 7>', 4, 0, 4, 9];
  const op = (name: string, kernel: string) => ({
    ...{ name, kernel, plan: 'In [7] #1', op: 'Add', cluster: 'cluster_0', reason: null, lines: [position] },
    ...{ shape: [8], dtype: 'float64', inputs: [], scope: null, seconds: null }
  });
  const kernel = (name: string, ops: string[], seconds: number) => ({
    ...{ name, plan: 'In [7] #1', cluster: 'cluster_0', ops, kind: 'nest', lines: [4], calls: 1, seconds },
    ...{ bytes_read: 8, bytes_written: 8, flops: 8, bound: 'memory', of_peak: null }
  });
  const told = (count: number) => {
    const names = Array.from({ length: count }, (_, index) => `k${index}`);
    const [mark] = lineMarks(
      report({
        ...line,
        verdict: { ...line.verdict, seconds: 0.01 },
        plans: [{ name: 'In [7] #1', function: 'In [7]', trace: 1 }],
        ops: names.map(name => op(`add_${name}`, name)),
        kernels: names.map(name => kernel(name, [`add_${name}`], 0.001)),
        clusters: [
          {
            ...{ name: 'cluster_0', plan: 'In [7] #1', color: 0, pattern: 'solid', reason: null, calls: 1 },
            ...{ ops: names.map(name => `add_${name}`), kernels: names, seconds: count * 0.001, lines: [4] },
            ...{ flops: 8, bytes_read: 8, bytes_written: 8 }
          }
        ],
        ...{ boundaries: [], fallbacks: [], statements: [], retraces: [] }
      })
    );
    return mark;
  };
  assert.deepEqual([told(2)?.name, told(2)?.cost], ['k0 + k1', '2.0 ms']);
  assert.equal(told(2)?.label, '2.0 ms together. Kernel k0 of cluster_0, 1.0 ms. Kernel k1 of cluster_0, 1.0 ms.');
  assert.deepEqual([told(3)?.name, told(3)?.cost], ['3 kernels', '3.0 ms']);
});

test('a kernel is named with its cluster, or its trace, where several have the name', () => {
  const names = (clusters: [name: string, plan: string, kernel: string][], lineOf = (at: number) => at + 3) =>
    lineMarks(
      report({
        ...line,
        plans: [1, 2].map(trace => ({ name: `f #${trace}`, function: 'f', trace })),
        ops: clusters.map(([cluster, plan, kernel], at) => ({
          ...{
            name: `add_${at}`,
            kernel,
            plan,
            op: 'Add',
            cluster,
            reason: null,
            lines: [['<cell 7>', lineOf(at), 0, lineOf(at), 9]]
          },
          ...{ shape: [8], dtype: 'float64', inputs: [], scope: null, seconds: null }
        })),
        kernels: clusters.map(([cluster, plan, name], at) => ({
          ...{ name, plan, cluster, ops: [`add_${at}`], kind: 'nest', lines: [], calls: 1, seconds: 0.001 },
          ...{ bytes_read: 8, bytes_written: 8, flops: 8, bound: 'memory', of_peak: null }
        })),
        clusters: clusters.map(([name, plan], color) => ({
          ...{ name, plan, color, pattern: 'solid', reason: null, calls: 1 },
          ...{ ops: clusters.flatMap(([own], at) => (own === name ? [`add_${at}`] : [])) },
          ...{ kernels: clusters.flatMap(([own, , kernel]) => (own === name ? [kernel] : [])) },
          ...{ seconds: 0.001, lines: [], flops: 8, bytes_read: 8, bytes_written: 8 }
        })),
        ...{ boundaries: [], fallbacks: [], statements: [], retraces: [] }
      })
    ).map(({ name }) => name);
  const [one, two] = ['f #1', 'f #2'];
  assert.deepEqual(
    names([
      ['cluster_0', one, 'k0'],
      ['cluster_1', two, 'k1']
    ]),
    ['k0', 'k1']
  );
  assert.deepEqual(
    names([
      ['cluster_0', one, 'k0'],
      ['cluster_1', two, 'k0']
    ]),
    ['cluster_0 k0', 'cluster_1 k0']
  );
  const traced = names([
    ['cluster_0', one, 'k0'],
    ['cluster_0', two, 'k0']
  ]);
  assert.equal(new Set(traced).size, 2);
  assert.ok(
    traced.every(name => name.endsWith(' k0') && !name.startsWith('cluster_0')),
    String(traced)
  );
  const four: Parameters<typeof names>[0] = [
    ['cluster_0', one, 'k0'],
    ['cluster_0', one, 'k1'],
    ['cluster_1', two, 'k0'],
    ['cluster_1', two, 'k1']
  ];
  const paired = names(four, at => (at < 2 ? 3 : 4)); // the cluster is said once
  assert.deepEqual(paired, ['cluster_0 k0 + k1', 'cluster_1 k0 + k1']);
  assert.deepEqual(
    names(four, at => (at % 2 ? 3 : 4)),
    ['2 kernels', '2 kernels']
  );
});

/** A report of kernels that take 1 ms each, told by the lines of their operations: `4` or `<cell 2>:4`. */
function kernelsOf(kernels: Record<string, (number | string)[]>, seconds: number | null = 0.001) {
  const at = (place: number | string) =>
    typeof place === 'number'
      ? ['<cell 7>', place, 0, place, 9]
      : [place.split(':')[0], Number(place.split(':')[1]), 0, 1, 9];
  const ops = Object.entries(kernels).flatMap(([kernel, places]) =>
    places.map((place, index) => ({
      ...{ name: `${kernel}_${index}`, kernel, plan: 'In [7] #1', op: 'Add', cluster: 'cluster_0', reason: null },
      ...{ lines: [at(place)], shape: [8], dtype: 'float64', inputs: [], scope: null, seconds: null }
    }))
  );
  const names = Object.keys(kernels);
  return lineMarks(
    report({
      ...line,
      plans: [{ name: 'In [7] #1', function: 'In [7]', trace: 1 }],
      ops,
      kernels: names.map(name => ({
        ...{ name, plan: 'In [7] #1', cluster: 'cluster_0', kind: 'nest', lines: [], calls: 1, seconds },
        ...{ ops: ops.filter(({ kernel }) => kernel === name).map(op => op.name), bytes_read: 8, bytes_written: 8 },
        ...{ flops: 8, bound: 'memory', of_peak: null }
      })),
      clusters: [
        {
          ...{ name: 'cluster_0', plan: 'In [7] #1', color: 1, pattern: 'diagonal', reason: null, calls: 1 },
          ...{ ops: ops.map(({ name }) => name), kernels: names, seconds, lines: [], flops: 8 },
          ...{ bytes_read: 8, bytes_written: 8 }
        }
      ],
      ...{ boundaries: [], fallbacks: [], statements: [], retraces: [] }
    })
  );
}

test('a bracket holds the lines of a kernel together, and goes by those between that are not its own', () => {
  const marks = kernelsOf({ k0: [2, 4, 6], k1: [3, 8], k2: [9, 10], k3: [12] });
  const drawn = marks.map(mark => [mark.line, ...mark.brackets.map(bracket => bracket?.edge ?? '')]);
  assert.deepEqual(drawn, [
    [2, 'first'],
    [3, 'by', 'first'],
    [4, 'own', 'by'],
    [5, 'by', 'by'],
    [6, 'last', 'by'],
    [7, '', 'by'],
    [8, '', 'last'],
    [9, 'first'],
    [10, 'last'],
    [12]
  ]);
  const words = new Map(marks.map(mark => [mark.line, mark.cost ? `${mark.cost} ${spanText(mark)}` : restText(mark)]));
  assert.deepEqual(
    [2, 3, 4, 5, 8, 12].map(at => words.get(at)),
    ['1.0 ms 3 lines', '1.0 ms 2 lines', 'k0 with line 2', '', 'k1 with line 3', '1.0 ms ']
  );
});

test('a line of several kernels says in which, and a kernel that was not timed is told without a line', () => {
  const marks = kernelsOf({ k0: [2, 4], k1: [3, 4] });
  const last = marks.find(({ line: at }) => at === 4);
  assert.equal(last && restText(last), 'in k0 + k1');
  assert.deepEqual(kernelsOf({ k0: [2, 4] }, null).map(restText), ['in k0', '', 'in k0']);
});

test('the lines of a helper in another cell say in which cell the cost stands', () => {
  const marks = kernelsOf({ k0: [4, '<cell 2>:1', '<cell 2>:2', 5] });
  const there = marks.filter(({ file }) => file === '<cell 2>');
  assert.deepEqual(there.map(restText), ['k0 with In [7], line 4', 'k0 with In [7], line 4']);
  const first = marks.find(({ file, line: at }) => file === '<cell 7>' && at === 4);
  assert.equal(first && spanText(first), 'lines 4–5');
});

test('lines of functions of other cells are those cells’ lines', () => {
  const elsewhere = report({
    ...softmax,
    sources: [{ file: '<cell 2>', cell: 'def', first: 1, lines: ['def f(x):'] }]
  });
  assert.equal(cellOfFile(elsewhere, '<cell 2>'), 'def');
  assert.equal(cellOfFile(elsewhere, '<cell 7>'), 'a1b2');
  assert.equal(cellOfFile(elsewhere, '/home/someone/lib.py'), null);
});

test('lines that moved keep their marks, and only those that differ are named', () => {
  const compiled = ['%%jit', 'a = 1', 'b = 2', 'c = 3'];
  const inserted = editsOf(compiled, ['%%jit', '# new', 'a = 1', 'b = 20', 'c = 3', '']);
  assert.deepEqual(inserted.differ, [2, 4]);
  assert.deepEqual([...inserted.now].sort(), [
    [1, 1],
    [2, 3],
    [4, 5]
  ]);
  assert.deepEqual(editsOf(compiled, ['%%jit', 'c = 3']).differ, [2]);
  assert.deepEqual(editsOf(compiled, [...compiled, '  ', '']).differ, []);
  assert.deepEqual(editsOf(compiled, []).differ, [1]);
});

test('of a plan that was given up lines and boxes are hollow, and no line has its times', () => {
  const plans = softmax.plans.map(plan => ({ ...plan, given_up: true }));
  const lines = ['<cell 7>', 3, 0, 3, 9];
  const statement = { text: 'p = e / s', lines: [lines], reason: { code: 'x', text: '' }, seconds: 0.004, calls: 1 };
  const gone = report({ ...softmax, plans, statements: [{ ...statement, fell_back: true }] });
  const marks = lineMarks(gone);
  const colored = marks.filter(({ color }) => color !== null);
  assert.ok(colored.length > 3 && colored.every(({ color, brackets }) => color === HOLLOW && brackets.length === 0));
  assert.deepEqual(
    marks.filter(({ cost }) => cost !== '').map(({ line, name, cost }) => [line, name, cost]),
    [[3, 'Python', '4.0 ms']]
  );
  assert.ok(colored.some(({ label }) => label.endsWith('which was given up.')));
  const { parts } = flowOf(gone);
  const boxes = parts.flatMap(({ nodes }) => nodes).filter(({ cluster }) => cluster !== null);
  assert.ok(boxes.every(({ cluster, kernels }) => cluster?.color === HOLLOW && kernels.every(k => k.color === HOLLOW)));
  assert.deepEqual([clusterMark(HOLLOW), clusterMark(5)], ['op', 'c5']);
});
