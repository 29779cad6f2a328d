import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colorsOf } from '../src/core/report/colors';
import { lineMarks } from '../src/core/sections/code/lines';
import { flowOf } from '../src/core/sections/clusters/flow';
import { layoutClusters } from '../src/core/sections/clusters/layout';
import { GraphTree } from '../src/core/sections/clusters/tree';
import { prepareLanes } from '../src/core/sections/timeline/prepare';
import { layoutBars, layoutStrip } from '../src/core/sections/verdict/layout';
import softmax from './fixtures/softmax.json';
import { measure, report } from './helpers';
import type { Picture } from '../src/core/base/shapes';

/** The lesson's first cluster alone, of two kernels. */
function alone(): ReturnType<typeof report> {
  const within = ({ cluster }: { cluster: string | null }): boolean => cluster === 'cluster_0';
  const lanes = softmax.timeline.lanes.map(lane => ({ ...lane, spans: lane.spans.filter(span => within(span)) }));
  return report({
    ...softmax,
    clusters: softmax.clusters.filter(({ name }) => name === 'cluster_0'),
    kernels: softmax.kernels.filter(within),
    ops: softmax.ops.filter(within),
    boundaries: [],
    retraces: [],
    fallbacks: [],
    timeline: { ...softmax.timeline, lanes }
  });
}

function marks({ shapes }: Picture): string[] {
  return [...new Set(shapes.flatMap(shape => (shape.shape === 'box' && shape.mark ? [shape.mark] : [])))];
}

test('where there is one cluster, its kernels have a colour each; where there are several, each cluster has one', () => {
  const [k0 = '', k1 = ''] = alone().clusters[0]?.kernels ?? [];
  const one = colorsOf(alone());
  assert.deepEqual([one('cluster_0', k0), one('cluster_0', k1), one(null, null)], [0, 1, null]);
  const all = report(softmax);
  const several = colorsOf(all);
  for (const { name, color, kernels } of all.clusters) {
    assert.deepEqual(new Set(kernels.map(kernel => several(name, kernel))), new Set([color]));
  }
});

test('strip, bars, graph, source, map and timeline give a kernel of a lone cluster the same mark', () => {
  const json = alone();
  const flow = flowOf(json);
  assert.deepEqual(marks(layoutStrip(flow, 356, measure)), ['c0', 'c1']);
  const timed = flow.parts[0]?.nodes[0]?.kernels.every(({ kernel }) => kernel.seconds !== null);
  assert.deepEqual(marks(layoutBars(flow, flow.seconds ?? 1, null, 356, measure)), timed ? ['c0', 'c1'] : ['c0']);
  const open = new Set(['cluster_0']);
  assert.deepEqual(marks(layoutClusters(flow, { width: 356, measure, open, linked: null })), ['c0', 'c1']);
  assert.deepEqual(new Set(lineMarks(json).map(({ color }) => color)), new Set([0, 1]));
  const tree = new GraphTree(flow);
  const [cluster] = tree.roots;
  assert.deepEqual(cluster && tree.childrenOf(cluster).map(({ color }) => color), [0, 1]);
  const used = prepareLanes(json.lanes, json.clusters).flatMap(lane => [...lane.marks]);
  assert.ok(used.includes('launch') && !used.includes('c2'));
});
