import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Box } from '../src/core/base/shapes';
import type { Lane, Report, Span } from '../src/core/report/report';
import { chromeTrace } from '../src/core/sections/timeline/chrome';
import { laneTop, layoutTimeline, nameOf, spanAt, spanTitle } from '../src/core/sections/timeline/layout';
import { heldOf, heldText } from '../src/core/sections/timeline/memory';
import { Navigation } from '../src/core/sections/timeline/navigation';
import { homeWindow, prepareLanes, wholeWindow, type PreparedLane } from '../src/core/sections/timeline/prepare';
import { timelineSummary } from '../src/core/sections/timeline/summary';
import { totals, trafficOf } from '../src/core/sections/timeline/totals';
import gpu from './fixtures/gpu.json';
import softmax from './fixtures/softmax.json';
import { measure, misplaced, report, texts } from './helpers';

const json = report(softmax);
const lanes = prepareLanes(json.lanes, json.clusters);
const window = wholeWindow(lanes);
const flame = lanes.find(({ name }) => name === 'compiling') as PreparedLane;
const still = { measure, window, selected: null, lit: null, cursor: null };

test('the heading sets beside op by op all that ran instead of it: what NumPy ran between clusters, too', () => {
  assert.match(timelineSummary(json), /^op by op [\d.]+ ms · compiled [\d.]+ ms \+ host [\d.]+ ms$/);
  const compiled = { ...json, lanes: json.lanes.filter(({ name }) => name !== 'host') };
  assert.match(timelineSummary(compiled), /^op by op [\d.]+ ms · compiled [\d.]+ ms$/);
});

test('all lanes of a group stand on one axis', () => {
  const { shapes } = layoutTimeline(lanes, { ...still, width: 560 });
  const end = (mark: string) =>
    Math.max(...shapes.flatMap(shape => (shape.shape === 'box' && shape.mark === mark ? [shape.x + shape.width] : [])));
  const scale = (560 - 76 - 70) / window.end;
  assert.ok(Math.abs(end('op') - (76 + 47_915 * scale)) < 3);
  assert.ok(Math.abs(end('c1') - (76 + 9760 * scale)) < 3);
  assert.ok(Math.abs(end('host') - (76 + 6420 * scale)) < 3);
});

test('a lane that was run once says so, and what Python ran is called by its line', () => {
  const said = texts(layoutTimeline(lanes, { ...still, width: 560 })).map(({ text }) => text);
  assert.ok(said.includes('once, cold'));
  const [span] = json.lanes[0]?.spans ?? [];
  assert.ok(span);
  const statement = { ...span, kind: 'statement', name: 'a print is put off', label: 'put_off' };
  assert.deepEqual(
    [nameOf({ ...statement, lines: [7] }), nameOf({ ...statement, lines: [] })],
    ['line 7', 'a print is put off']
  );
});

test('the axis starts with what is to be compared, however long the first call took', () => {
  assert.deepEqual(homeWindow(lanes), window);
  const slow = prepareLanes(
    json.lanes.map(lane => ({
      ...lane,
      spans:
        lane.group === 'compiling' ? lane.spans.map(span => ({ ...span, duration: span.duration * 100 })) : lane.spans
    })),
    json.clusters
  );
  assert.ok(homeWindow(slow).end < 50_000);
  const picture = layoutTimeline(slow, { ...still, window: homeWindow(slow), width: 380 });
  assert.deepEqual(misplaced(picture), []);
  const goesOn = picture.shapes.filter(shape => shape.shape === 'words' && shape.text.startsWith('→ '));
  assert.ok(goesOn.length >= 1, 'lanes that go on say so');
});

test('of very many spans the axis starts with a stretch in which each can be seen, where all lanes have some', () => {
  const many = (name: string, count: number, first: number): Lane => ({
    name,
    group: name,
    dropped: first,
    total: first + count,
    spans: Array.from({ length: count }, (_, index) => ({
      name: 'op',
      label: 'MatMul',
      kind: 'op',
      plan: '',
      start: (first + index) * 10,
      duration: 9,
      cluster: null,
      bytes: 0,
      tier: '',
      lines: []
    }))
  });
  const home = homeWindow(prepareLanes([many('op by op', 2000, 1600), many('compiled', 3000, 0)], []));
  assert.equal(home.start, 16_000);
  assert.ok(home.end - home.start < 600);
  const short = [many('op by op', 2000, 0), many('compiled', 3, 0)];
  const both = homeWindow(prepareLanes(short, []));
  assert.ok(
    both.start === 0 && both.end >= 19_999,
    'lanes that take 20 ms and 0.03 ms are as long as that on one axis'
  );
});

test('what was compiled is a flame: a trace, its stages within it, and within the capture the passes', () => {
  assert.deepEqual(
    lanes.map(({ name }) => name),
    ['op by op', 'compiled', 'kernels', 'host', 'compiling', 'codegen good']
  );
  assert.deepEqual(
    lanes.filter(({ head }) => head).map(({ group }) => group),
    ['op by op', 'compiled', 'compiling']
  );
  assert.ok(flame.nests);
  assert.deepEqual(
    flame.rows.map(row => [...row].map(at => nameOf(flame.spans[at] as Span))),
    [['In [7] #1'], ['capture', 'planning', 'cluster_0', 'cluster_1'], ['fold_constants', 'merge_equal']]
  );
  assert.deepEqual([...flame.parents], [-1, 0, 1, 1, 0, 0, 0]);
});

test('the names of a flame stand on its bars, cut where there is no more room, and on nothing else at any zoom', () => {
  const top = laneTop(lanes, lanes.indexOf(flame), 356);
  for (const width of [216, 356, 536]) {
    for (const share of [1, 0.5, 0.17, 0.03]) {
      for (const from of [0, 0.1, 0.4]) {
        const part = { start: from * 7100, end: from * 7100 + share * 7100 };
        const picture = layoutTimeline(lanes, { ...still, window: part, width });
        assert.deepEqual(misplaced(picture), [], `${width} ${share} ${from}`);
        const bars = picture.shapes.filter(shape => shape.shape === 'box' && shape.mark !== undefined);
        const over = texts(picture).filter(
          area => area.bottom > top && bars.some(bar => bar.shape === 'box' && crosses(area, bar))
        );
        assert.deepEqual(over, [], 'a name on the end of a bar');
      }
    }
  }
  const { shapes } = layoutTimeline(lanes, { ...still, window: { start: 0, end: 7100 }, width: 536 });
  const said = shapes.flatMap(shape => (shape.shape === 'words' ? [shape.text] : []));
  assert.ok(said.includes('capture') && said.includes('cluster_0') && said.includes('In [7] #1'));
  assert.ok(!said.some(text => text.startsWith('fold')), 'a pass of 5 pixels has no name');
});

/** A text that begins on a bar and ends beside it, or the other way round. */
function crosses(text: ReturnType<typeof texts>[number], bar: Box): boolean {
  const [left, right] = [Math.max(text.left, bar.x), Math.min(text.right, bar.x + bar.width)];
  const isBeside = text.bottom <= bar.y || text.top >= bar.y + bar.height || right <= left;
  return !isBeside && (text.left < bar.x - 1 || text.right > bar.x + bar.width + 1);
}

test('in a flame the keys go in and out, and from lane to lane past its ends', () => {
  const nav = new Navigation();
  nav.lanes = lanes;
  nav.window = window;
  const at = lanes.indexOf(flame);
  const path = (by: number, times: number) =>
    Array.from({ length: times }, () => (nav.changeLane(by) ? [nav.cursor?.lane, nameOf(nav.span as Span)] : null));
  nav.cursor = { lane: at - 1, span: 0 };
  assert.deepEqual(path(1, 4), [
    [at, 'In [7] #1'],
    [at, 'capture'],
    [at, 'fold_constants'],
    [at + 1, 'cluster_0']
  ]);
  nav.cursor = { lane: at, span: 3 };
  assert.deepEqual(path(-1, 3).slice(0, 2), [
    [at, 'capture'],
    [at, 'In [7] #1']
  ]);
  assert.equal(nav.cursor.lane, at - 1);
});

test('of a flame a selection says what each took itself', () => {
  const told = totals(lanes, { start: 0, end: 1300 }).find(({ lane }) => lane === 'compiling');
  assert.equal(told?.text, '4 of 7 spans ended · 1.3 ms busy');
  assert.equal(told.names, 'capture, planning, merge_equal and 1 more');
});

test('what a trace lies in is so in a Chrome trace, too', () => {
  const { traceEvents } = chromeTrace(json) as {
    traceEvents: { ph: string; name: string; pid: number; tid: number; ts: number; dur: number }[];
  };
  const [trace, capture, pass] = ['In [7] #1', 'capture', 'fold_constants'].map(name =>
    traceEvents.find(event => event.ph === 'X' && event.name === name)
  );
  assert.ok(trace && capture && pass);
  assert.ok(trace.tid === capture.tid && capture.tid === pass.tid && trace.pid === pass.pid);
  assert.ok(trace.ts <= capture.ts && capture.ts + capture.dur <= trace.ts + trace.dur);
  assert.ok(capture.ts <= pass.ts && pass.ts + pass.dur <= capture.ts + capture.dur);
});

test('an earlier report has its stages in lanes of their own', () => {
  const stage = (name: string, kind: string, start: number): Lane => ({
    ...{ name, group: 'first call', dropped: 0, total: 1 },
    spans: [{ name, label: kind, kind, plan: '', start, duration: 100, cluster: null, bytes: 0, tier: '', lines: [] }]
  });
  const older = prepareLanes([stage('capture', 'capture', 0), stage('passes', 'passes', 50)], []);
  assert.deepEqual(
    older.map(({ nests, depth, marks }) => [nests, depth, marks[0]]),
    [
      [false, 1, 'capture'],
      [false, 1, 'passes']
    ]
  );
  assert.deepEqual(misplaced(layoutTimeline(older, { ...still, window: { start: 0, end: 200 }, width: 356 })), []);
});

test('one span within another lies below it', () => {
  const [all] = json.lanes;
  const first = all?.spans[0];
  assert.ok(first);
  const [outer] = prepareLanes([{ ...all, spans: [...all.spans, { ...first, start: 0, duration: 60_000 }] }], []);
  assert.equal(outer?.depth, 2);
  assert.equal(outer.rows[1]?.length, 22);
});

for (const width of [216, 356, 536]) {
  test(`no text stands on another at ${width} pixels`, () =>
    assert.deepEqual(misplaced(layoutTimeline(lanes, { ...still, width })), []));
}

test('bars end before the totals, however wide the letters are and wherever the window ends', () => {
  for (const width of [216, 356, 536]) {
    for (const wider of [1, 1.3, 1.6]) {
      const wide: typeof measure = (text, type) => wider * measure(text, type);
      for (const end of [window.end, window.end / 3, window.end / 30]) {
        const { shapes } = layoutTimeline(lanes, { ...still, measure: wide, window: { start: 0, end }, width });
        const totals = shapes.flatMap(shape =>
          shape.shape === 'words' && shape.align === 'right' ? [shape.x - wide(shape.text, shape.type)] : []
        );
        const bars = shapes.flatMap(shape => (shape.shape === 'box' && shape.mark ? [shape.x + shape.width] : []));
        assert.ok(totals.length >= lanes.length && bars.length > 0);
        assert.ok(Math.min(...totals) - Math.max(...bars) >= 6, `${width} ${wider} ${end}`);
      }
    }
  }
});

test('the span under the pointer is found', () => {
  const top = laneTop(lanes, 1, 560);
  assert.deepEqual(spanAt(lanes, window, 560, 80, top + 4), { lane: 1, span: 0 });
  assert.equal(spanAt(lanes, window, 560, 480, top + 4), null);
});

test('the keyboard goes from span to span and from lane to lane, and the window goes along', () => {
  const nav = new Navigation();
  nav.lanes = lanes;
  nav.fit();
  assert.deepEqual(nav.window, homeWindow(lanes));
  assert.ok(nav.step(1) && nav.step(1));
  assert.deepEqual(nav.cursor, { lane: 0, span: 1 });
  const first = nav.span;
  nav.zoom(1 / 1000, 0);
  assert.ok(nav.touched && nav.window.end < (first?.start ?? 0), 'the span at the cursor is out of sight');
  assert.ok(nav.step(1));
  assert.ok(nav.window.start <= (nav.span?.start ?? 0) && nav.window.end > (nav.span?.start ?? 0));
  const time = nav.span?.start ?? 0;
  assert.ok(nav.changeLane(1));
  assert.equal(nav.cursor.lane, 1);
  assert.ok((nav.span?.start ?? Infinity) <= time, 'what runs there at that time');
  assert.equal(nav.changeLane(lanes.length), false);
  assert.ok(nav.select());
  assert.equal(nav.selected?.start, nav.span?.start);
  nav.centre();
  assert.ok(nav.selected && nav.window.start <= nav.selected.start && nav.window.end >= nav.selected.end);
  assert.ok(nav.clear());
  assert.equal(nav.clear(), false);
  assert.deepEqual([nav.cursor, nav.selected], [null, null]);
});

test('a selection has totals: what ended, how long it was busy, what it moved', () => {
  const [, compiled] = totals(lanes, { start: 0, end: 5480 }, trafficOf(json));
  assert.equal(compiled?.lane, 'compiled');
  assert.match(compiled.text, /^1 of 2 spans ended · 5\.5 ms busy · .* [MG]B · .*B\/s$/);
  assert.equal(compiled.names, 'cluster_0');
});

test('the rate of a stretch is that of what lies in it: of half a span half of its bytes', () => {
  const span = { name: 'k0', label: 'k0', kind: 'copy', cluster: null, plan: '', lines: [] };
  const spans = [
    { ...span, start: 0, duration: 1000, bytes: 4_000_000, tier: '' },
    { ...span, start: 1000, duration: 1000, bytes: 1_000_000, tier: '' }
  ];
  const copies = prepareLanes([{ name: 'copies', group: 'compiled', dropped: 0, total: 2, spans }], []);
  const told = (start: number, end: number) => totals(copies, { start, end })[0]?.text;
  assert.equal(told(0, 1000), '1 of 2 spans ended · 1.0 ms busy · 4.0 MB · 4.0 GB/s');
  assert.equal(told(500, 900), '0 of 2 spans ended · 0.40 ms busy · 4.0 GB/s');
  assert.equal(told(500, 2000), '2 of 2 spans ended · 1.5 ms busy · 5.0 MB · 2.0 GB/s');
});

test('a lane in which nothing ran has no row in the totals', () => {
  assert.deepEqual(totals(lanes, { start: 1e9, end: 2e9 }), []);
});

function manySpans(count: number): Lane[] {
  const spans = Array.from({ length: count }, (_, index) => ({
    name: `op_${index}`,
    label: 'MatMul',
    kind: 'op',
    start: index * 10,
    duration: 9,
    cluster: null,
    plan: '',
    bytes: 0,
    tier: '',
    lines: []
  }));
  return [{ name: 'op by op', group: 'op by op', dropped: 0, total: count, spans }];
}

test('a hundred thousand spans cost what a pixel column can show', () => {
  const prepared = prepareLanes(manySpans(100_000), []);
  const { shapes } = layoutTimeline(prepared, { ...still, window: wholeWindow(prepared), width: 380 });
  assert.ok(shapes.length < 200, `${shapes.length}`);
});

test('of a hundred thousand spans those in the window are found, and only those are looked at', () => {
  const prepared = prepareLanes(manySpans(100_000), []);
  let seen = 0;
  const lit = () => {
    seen++;
    return false;
  };
  const window = { start: 500_000, end: 500_100 };
  layoutTimeline(prepared, { ...still, window, width: 560, lit });
  assert.ok(seen >= 10 && seen <= 12, `${seen}`);
  const place = spanAt(prepared, window, 560, 300, laneTop(prepared, 0, 560) + 4);
  assert.equal(place?.span, 50_005);
});

test('a chrome trace has a process a group, a thread a lane and a complete event a span', () => {
  const { traceEvents } = JSON.parse(JSON.stringify(chromeTrace(json))) as {
    traceEvents: { ph: string; name: string; pid: number; ts?: number; dur?: number; args: Record<string, unknown> }[];
  };
  const names = traceEvents.filter(({ ph }) => ph === 'M').map(({ args }) => args.name);
  assert.ok(names.includes('In [7] compiled') && names.includes('op by op'));
  const spans = traceEvents.filter(({ ph }) => ph === 'X');
  assert.equal(
    spans.length,
    json.lanes.reduce((sum, lane) => sum + lane.spans.length, 0)
  );
  assert.ok(spans.every(({ ts, dur }) => typeof ts === 'number' && typeof dur === 'number' && dur >= 0));
  const launch = spans.find(({ name }) => name === 'cluster_0');
  assert.deepEqual(launch?.args.lines, [3, 4, 5, 6, 7]);
});

/** Two runs of a cluster of three kernels: `a` is read by the last one, `b` by the one after it; their ends are known. */
function holding(): Report {
  const op = (name: string, kernel: string) => ({
    ...json.ops[0],
    name,
    kernel,
    plan: 'p',
    called: name,
    cluster: 'c'
  });
  const value = (name: string, consumers: string[], bytes: number) => ({
    ...({ plan: 'p', cluster: 'c', name, producer: name, consumers, bytes, place: 'scratch', lines: [] } as const),
    ...{ consumerLines: [], reason: { code: 'kept', text: '' } }
  });
  const span = (name: string, start: number) => ({
    ...{ name, label: '', kind: 'kernel', plan: 'p', start, duration: 10, cluster: 'c', bytes: 0, tier: '', lines: [] }
  });
  const spans = [0, 100].flatMap(from => ['k0', 'k1', 'k2'].map((name, at) => span(name, from + 10 * at)));
  return {
    ...json,
    ops: [op('a', 'k0'), op('b', 'k1'), op('c', 'k2')],
    temporaries: [value('a', ['b', 'c'], 1000), value('b', ['c'], 4000)],
    lanes: [{ name: 'kernels', group: 'kernels', dropped: 0, total: 6, spans }]
  } as unknown as Report;
}

test('the memory lane: what is held from the kernel that makes it to the last one that reads it, in each run', () => {
  const report = holding();
  const prepared = prepareLanes(report.lanes, report.clusters);
  const held = heldOf(report, prepared);
  assert.ok(held);
  assert.deepEqual([held.peak, held.at], [5000, 10]);
  assert.equal(heldText(held), '5.0 kB at most: b 4.0 kB, a 1.0 kB');
  const at = (time: number): number => {
    const place = held.times.findLastIndex(change => change <= time);
    return place < 0 ? 0 : (held.bytes[place] ?? 0);
  };
  assert.deepEqual([at(5), at(15), at(25), at(31), at(105), at(125), at(131)], [1000, 5000, 5000, 0, 1000, 5000, 0]);
  assert.equal(heldOf({ ...report, temporaries: [] }, prepared), null);
  const [lane] = report.lanes;
  const spans = Array.from({ length: 60_000 }, (_, at) => ({
    ...(lane?.spans[at % 3] as Span),
    start: 10 * at
  }));
  const many = prepareLanes([{ ...(lane as Lane), spans, times: undefined }], []);
  const part = heldOf(report, many);
  assert.ok(part && part.end > 300_000 && part.end < 310_000, 'of very many runs the first ones');
  for (const width of [240, 380, 560]) {
    const options = { ...still, window: wholeWindow(prepared), width };
    const picture = layoutTimeline(prepared, { ...options, held });
    assert.deepEqual(misplaced(picture), []);
    const without = layoutTimeline(prepared, options);
    assert.ok(picture.height > without.height + 20);
    const bars = picture.shapes.filter(shape => shape.shape === 'box' && shape.fill === 'muted');
    assert.equal(bars.length, 4, 'two steps in each of two runs');
  }
});

test('a run on a GPU has lanes for its kernels and its copies, and says that it was simulated', () => {
  const { lanes, clusters } = report(gpu.report);
  const prepared = prepareLanes(lanes, clusters);
  assert.deepEqual(
    prepared.map(({ name }) => name),
    ['compiled', 'simulated GPU', 'to GPU', 'to host']
  );
  assert.deepEqual([...new Set(prepared.slice(2).flatMap(({ marks }) => marks))], ['copy']);
  const window = wholeWindow(prepared);
  const picture = layoutTimeline(prepared, { width: 600, measure, window, selected: null, lit: null, cursor: null });
  const shown = texts(picture).map(({ text }) => text);
  assert.deepEqual(misplaced(picture), []);
  assert.ok(
    ['GPU', 'simulated', 'to GPU', 'to host'].every(text => shown.includes(text)),
    shown.join()
  );
  const [copy] = lanes[2]?.spans ?? [];
  assert.ok(copy);
  assert.match(spanTitle(copy), /^to the GPU {2}[\d.]+ .s, 8\.2 kB, [\d.]+ .B\/s$/);
  const [launch] = lanes[0]?.spans ?? [];
  assert.ok(launch);
  assert.doesNotMatch(spanTitle(launch), /enqueued/);
  assert.match(spanTitle({ ...launch, enqueued: 12 }), /, enqueued in 12 µs$/);
});
