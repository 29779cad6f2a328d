import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flowOf } from '../src/core/sections/clusters/flow';
import { NotebookModel } from '../src/core/report/model';
import type { Report } from '../src/core/report/report';
import { sameReport } from '../src/core/report/same';
import { prepareLanes } from '../src/core/sections/timeline/prepare';
import { busyOf, countOf } from '../src/core/sections/timeline/summary';
import softmax from './fixtures/softmax.json';
import { report } from './helpers';
import { hugeReport } from './huge';

test('a report that says the same is the one before it, and one that says else is not', () => {
  const model = new NotebookModel(() => undefined);
  const take = (value: unknown): Report | null | undefined => {
    model.receive({ op: 'report', cell: 'a', report: value });
    return model.cell('a')?.report;
  };
  const first = take(softmax);
  assert.equal(take(structuredClone(softmax)), first);
  const slower = structuredClone(softmax);
  slower.verdict.seconds *= 2;
  assert.notEqual(take(slower), first);
  const later = structuredClone(softmax);
  const [span] = later.timeline.lanes[0]?.spans ?? [];
  assert.ok(span);
  span.start += 1;
  assert.ok(!sameReport(report(softmax), report(later)));
});

test('the time of a lane is known before one of its spans is made', () => {
  for (const { lanes, clusters } of [report(softmax), report(hugeReport(500))]) {
    const before = lanes.map(lane => [busyOf(lane), countOf(lane)]);
    const prepared = prepareLanes(lanes, clusters);
    assert.deepEqual(
      before,
      prepared.map(lane => [lane.busy, lane.spans.length])
    );
  }
});

test('operations of a line share their place, and each operation is in the box that has it', () => {
  const json = report(hugeReport(400));
  assert.equal(json.ops[0]?.lines, json.ops[40]?.lines);
  const { parts } = flowOf(json);
  const nodes = parts.flatMap(part => part.nodes);
  assert.equal(
    nodes.reduce((sum, node) => sum + node.ops.length, 0),
    400
  );
  for (const node of nodes) {
    assert.ok(node.ops.every(op => op.cluster === node.name));
    assert.ok(node.kernels.every(part => part.ops.every(op => op.kernel === part.kernel.name)));
  }
});
