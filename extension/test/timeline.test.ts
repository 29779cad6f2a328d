import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lane } from '../src/core/report';
import {
  homeWindow,
  laneTop,
  layoutTimeline,
  prepareLanes,
  spanAt,
  totals,
  wholeWindow
} from '../src/core/timeline/layout';
import softmax from './fixtures/softmax.json';
import { measure, misplaced, report } from './helpers';

const json = report(softmax);
const lanes = prepareLanes(json.lanes, json.clusters);
const window = wholeWindow(lanes);
const still = { measure, window, selected: null, linked: null, cursor: null };

test('all lanes stand on one axis', () => {
  const { shapes } = layoutTimeline(lanes, { ...still, width: 560 });
  const end = (mark: string) =>
    Math.max(...shapes.flatMap(shape => (shape.shape === 'box' && shape.mark === mark ? [shape.x + shape.width] : [])));
  const scale = (560 - 72 - 58) / window.end;
  assert.ok(Math.abs(end('op') - (72 + 47_915 * scale)) < 3);
  assert.ok(Math.abs(end('c1') - (72 + (7100 + (5480 + 3340) * 1.4 + 940) * scale)) < 3);
});

test('the axis starts with what is to be compared, however long the first call took', () => {
  assert.deepEqual(homeWindow(lanes), window);
  const slow = prepareLanes(
    json.lanes.map(lane => ({
      ...lane,
      spans:
        lane.name === 'first call' ? lane.spans.map(span => ({ ...span, duration: span.duration * 100 })) : lane.spans
    })),
    json.clusters
  );
  assert.ok(homeWindow(slow).end < 50_000);
  const picture = layoutTimeline(slow, { ...still, window: homeWindow(slow), width: 380 });
  assert.deepEqual(misplaced(picture), []);
  const goesOn = picture.shapes.filter(shape => shape.shape === 'words' && shape.text.startsWith('→ '));
  assert.equal(goesOn.length, 1, 'the lane that goes on says so');
});

test('of very many spans the axis starts with a stretch in which each can be seen, where all lanes have some', () => {
  const many = (name: string, count: number, first: number): Lane => ({
    name,
    dropped: first,
    spans: Array.from({ length: count }, (_, index) => ({
      name: 'op',
      label: 'MatMul',
      kind: 'op',
      plan: '',
      start: (first + index) * 10,
      duration: 9,
      cluster: null
    }))
  });
  const home = homeWindow(prepareLanes([many('op by op', 2000, 1600), many('compiled', 3000, 0)], []));
  assert.equal(home.start, 16_000);
  assert.ok(home.end - home.start < 600);
});

test('a kernel lies within its launch', () => {
  assert.deepEqual(
    lanes.map(lane => lane.depth),
    [1, 2, 2]
  );
  assert.equal(Math.round(lanes[1]?.busy ?? 0), 9760);
});

for (const width of [216, 356, 536]) {
  test(`no text stands on another at ${width} pixels`, () => {
    assert.deepEqual(misplaced(layoutTimeline(lanes, { ...still, width })), []);
  });
}

test('the span under the pointer is found, the innermost first', () => {
  const top = laneTop(lanes, 1, 560);
  assert.deepEqual(spanAt(lanes, window, 560, 74, top + 4), { lane: 1, span: 0 });
  assert.deepEqual(spanAt(lanes, window, 560, 74, top + 18), { lane: 1, span: 1 });
  assert.equal(spanAt(lanes, window, 560, 480, top + 4), null);
});

test('a selection has totals', () => {
  assert.deepEqual(totals(lanes, { start: 0, end: 5480 })[1], {
    lane: 'compiled',
    text: '3 of 7 spans end here, 5.5 ms busy'
  });
});

test('a hundred thousand spans cost what a pixel column can show', () => {
  const spans = Array.from({ length: 100_000 }, (_, index) => ({
    name: `op_${index}`,
    label: 'MatMul',
    kind: 'op',
    start: index * 10,
    duration: 9,
    cluster: null
  }));
  const many: Lane[] = [{ name: 'op by op', dropped: 0, spans }];
  const prepared = prepareLanes(many, []);
  const { shapes } = layoutTimeline(prepared, { ...still, window: wholeWindow(prepared), width: 380 });
  assert.ok(shapes.length < 700, `${shapes.length}`);
});
