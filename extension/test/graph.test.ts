import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flowOf } from '../src/core/sections/clusters/flow';
import { layered, type LayeredGraph } from '../src/core/sections/clusters/map/layered';
import { layOutGroup, Layouter, type GroupJob, type WorkerLike } from '../src/core/sections/clusters/map/layouter';
import { factsOf, fitting, placeLabels, Room, shorten, type Wanted } from '../src/core/sections/clusters/map/labels';
import { foundIn } from '../src/core/sections/clusters/map/lit';
import { Selection } from '../src/core/panel/selection';
import { minimapPlace } from '../src/core/sections/clusters/map/minimap';
import { Scene } from '../src/core/sections/clusters/map/scene';
import { SearchIndex } from '../src/core/sections/clusters/search';
import { GraphTree, MOST_CHILDREN, neighbourhood, type TreeNode } from '../src/core/sections/clusters/tree';
import { layoutClusters } from '../src/core/sections/clusters/layout';
import { duration } from '../src/core/base/format';
import branch from './fixtures/branch.json';
import softmax from './fixtures/softmax.json';
import { measure, misplaced, report, texts } from './helpers';
import { hugeReport } from './huge';

function graph(count: number, edges: [number, number][]): LayeredGraph {
  return {
    widths: Array.from({ length: count }, () => 60),
    heights: Array.from({ length: count }, () => 20),
    from: edges.map(([from]) => from),
    to: edges.map(([, to]) => to),
    aspect: 1.2
  };
}

function overlaps({ x, y }: { x: number[]; y: number[] }): number {
  let found = 0;
  x.forEach((left, a) => {
    for (let b = a + 1; b < x.length; b++) {
      const apart = Math.abs(left - (x[b] ?? 0)) >= 60 || Math.abs((y[a] ?? 0) - (y[b] ?? 0)) >= 20;
      found += apart ? 0 : 1;
    }
  });
  return found;
}

test('a layout puts readers below what they read, and no box on another', () => {
  const edges: [number, number][] = [
    [0, 1],
    [0, 2],
    [1, 3],
    [2, 3],
    [0, 3],
    [3, 4]
  ];
  const made = layered(graph(5, edges));
  for (const [from, to] of edges) {
    assert.ok((made.y[from] ?? 0) + 20 < (made.y[to] ?? 0));
  }
  assert.equal(overlaps(made), 0);
  assert.equal(made.x[1] === made.x[2], false);
  assert.ok((made.routes[4]?.length ?? 0) > 4, 'an edge over a rank has a place of its own between its boxes');
});

test('a long chain is folded into columns, also with edges that jump and edges that go back', () => {
  const edges = Array.from({ length: 299 }, (_, at): [number, number] => [at, at + 1]);
  edges.push([0, 200], [250, 10], [5, 5]);
  const made = layered(graph(300, edges));
  assert.equal(overlaps(made), 0);
  assert.ok(made.height < 300 * 42 * 0.5 && made.width > 200, `${made.width} by ${made.height}`);
  assert.ok([...made.x, ...made.y, ...made.routes.flat()].every(Number.isFinite));
});

test('a group without boxes, and boxes without edges, have a layout', () => {
  assert.equal(layered(graph(0, [])).height, 0);
  assert.equal(overlaps(layered(graph(90, []))), 0);
});

test('layout and job are handed to the worker as text, so they name nothing outside of themselves', () => {
  const job: GroupJob = { graph: graph(3, [[0, 1]]), inner: [-1, -1, -1], frame: { width: 24, height: 38 } };
  const here: ReturnType<typeof layered>[] = [];
  layOutGroup(job, here, layered);
  const text = `const layered = ${layered.toString()}; const job = ${layOutGroup.toString()}; job(given, done, layered);`;
  const there: ReturnType<typeof layered>[] = [];
  // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call
  new Function('given', 'done', text)(job, there);
  assert.deepEqual(there, here);
});

const bigJob = (): GroupJob => ({
  graph: graph(600, [[0, 1]]),
  inner: Array.from({ length: 600 }, () => -1),
  frame: { width: 0, height: 0 }
});

test('a newer layout ends the worker of the one before it', async () => {
  const ended: number[] = [];
  const workers: WorkerLike[] = [];
  const layouter = new Layouter(() => {
    const number = workers.length;
    const worker: WorkerLike = {
      onmessage: null,
      onerror: null,
      postMessage: () => undefined,
      terminate: () => ended.push(number)
    };
    workers.push(worker);
    return worker;
  });
  const first = layouter.run([bigJob()]);
  const second = layouter.run([bigJob()]);
  assert.equal(await first, null);
  assert.deepEqual(ended, [0]);
  workers[1]?.onmessage?.({ data: [layered(graph(1, []))] } as MessageEvent);
  assert.equal((await second)?.length, 1);
  layouter.dispose();
});

test('where a page forbids workers, or one fails, the page lays out itself', async () => {
  assert.equal((await new Layouter(() => null).run([bigJob()]))?.[0]?.x.length, 600);
  const failing: WorkerLike = {
    onmessage: null,
    onerror: null,
    postMessage() {
      this.onerror?.({ preventDefault: () => undefined } as ErrorEvent);
    },
    terminate: () => undefined
  };
  assert.equal((await new Layouter(() => failing).run([bigJob()]))?.[0]?.x.length, 600);
});

const huge = report(hugeReport(50_000));
const tree = new GraphTree(flowOf(huge));

function all(boxes: readonly TreeNode[], of: GraphTree): TreeNode[] {
  return boxes.flatMap(box => [box, ...all(of.childrenOf(box), of)]);
}

test('a graph begins with its clusters, and no group has more boxes than can be drawn at once', () => {
  assert.equal(tree.roots.length, 44);
  const [cluster] = tree.roots;
  assert.ok(cluster);
  assert.deepEqual(
    tree.childrenOf(cluster).map(({ kind }) => kind),
    ['kernel', 'kernel', 'kernel', 'kernel']
  );
  const many = new GraphTree(flowOf(report(hugeReport(50_000 * 2))));
  for (const box of all(many.roots.slice(0, 2), many)) {
    assert.ok(many.childrenOf(box).length <= MOST_CHILDREN);
  }
});

test('an edge is drawn where both of its ends are, and says what did not fuse', () => {
  assert.deepEqual(
    tree.edgesOf(null).filter(({ from, to }) => to !== from + 1),
    []
  );
  const [cluster] = tree.roots;
  const inside = tree.edgesOf(cluster ?? null);
  assert.equal(inside.filter(({ boundary }) => boundary !== null).length, 3);
});

test('opening a box lays out that box and what is around it, and nothing else', () => {
  const scene = new Scene(tree, measure);
  const step = (): number => {
    const { groups, jobs } = scene.jobs();
    const done: ReturnType<typeof layered>[] = [];
    jobs.forEach(job => layOutGroup(job, done, layered));
    scene.take(groups, done);
    return jobs.length;
  };
  assert.equal(step(), 1);
  const [first, second] = tree.roots;
  assert.ok(first && second);
  const before = scene.rectOf(second);
  scene.toggle(first);
  assert.deepEqual(scene.rectOf(second), before, 'nothing moves before the layout is there');
  assert.equal(step(), 2);
  const [kernel] = tree.childrenOf(first);
  assert.ok(kernel);
  scene.toggle(kernel);
  assert.equal(step(), 3);
  const rect = scene.rectOf(kernel);
  assert.ok(rect);
  assert.equal(scene.at(rect.x + 3, rect.y + 3), kernel);
  assert.equal([...scene.shown()].length, 44 + 4 + 285);
  scene.toggle(first);
  assert.equal(step(), 1);
});

test('search wants every word, of name, type, shape, dtype, line and reason', () => {
  const index = new SearchIndex(flowOf(report(softmax)));
  const names = (query: string) => index.find(query, 50).found.map(({ title }) => title);
  assert.deepEqual(names('exp float32'), ['Exp']);
  assert.ok(names('line 5').includes('Exp') && names('line 5').includes('k0'));
  assert.ok(!names('line:5').includes('Log'));
  assert.deepEqual(names('no loop'), ['ArgPartition']);
  assert.ok(names('read again').some(title => title.includes('→')));
  assert.deepEqual(names('exp nowhere'), []);
  const { found, total } = new SearchIndex(flowOf(huge)).find('matmul', 50);
  assert.deepEqual([found.length, total], [50, 10_000]);
});

test('the neighbours of an operation are what it reads and who reads it, step by step', () => {
  const small = new GraphTree(flowOf(report(softmax)));
  const exp = report(softmax).ops.find(({ name }) => name === 'exp');
  const op = small.flow.parts[0]?.nodes.flatMap(({ ops }) => ops).find(({ name }) => name === exp?.name);
  assert.ok(op);
  const near = (radius: number) => neighbourhood(small, op, radius).map(({ name }) => name);
  assert.deepEqual(near(1).sort(), ['div', 'exp', 'sub', 'sum']);
  assert.ok(near(2).length > near(1).length);
});

test('the body of a loop is in its loop: closed in the spine, then in a frame of its own', () => {
  const json = structuredClone(softmax) as { ops: { name: string; op: string; parent?: string }[] };
  const loop = json.ops.find(({ name }) => name === 'exp');
  assert.ok(loop);
  loop.op = 'While';
  for (const op of json.ops) {
    if (op.name === 'sum' || op.name === 'div') {
      op.parent = 'exp';
    }
  }
  const flow = flowOf(report(json));
  const layout = (open: string[]) =>
    layoutClusters(flow, { width: 548, measure, open: new Set(['cluster_0', ...open]), linked: null });
  const closed = layout([]);
  assert.equal(closed.items.find(({ id }) => id === 'op:exp')?.expanded, false);
  assert.ok(!closed.items.some(({ id }) => id === 'op:sum'));
  const open = layout(['op:exp']);
  assert.deepEqual(misplaced(open), []);
  assert.equal(open.items.find(({ id }) => id === 'op:sum')?.level, 4);
  const boxes = new GraphTree(flow);
  const inLoop = all(boxes.roots, boxes).find(({ kind }) => kind === 'loop');
  assert.deepEqual(inLoop && boxes.childrenOf(inLoop).map(({ id }) => id), ['sum', 'div']);
});

test('operations that a report has inside each other end no search for what is around them', () => {
  const json = structuredClone(softmax) as { ops: { name: string; parent?: string }[] };
  for (const op of json.ops) {
    op.parent = op.name === 'sum' ? 'exp' : op.name === 'exp' ? 'sum' : '';
  }
  const flow = flowOf(report(json));
  const boxes = new GraphTree(flow);
  const found = all(boxes.roots, boxes).map(({ id }) => id);
  assert.ok(found.includes('max') && !found.includes('exp'), found.join());
  const open = new Set(['cluster_0', 'op:exp', 'op:sum']);
  assert.deepEqual(misplaced(layoutClusters(flow, { width: 548, measure, open, linked: null })), []);
});

test('the sides of a branch stand beside one another where there is room, and say which they are', () => {
  const flow = flowOf(report(branch));
  const layout = (width: number) =>
    layoutClusters(flow, { width, measure, open: new Set(['cluster_0', 'op:branch']), linked: null });
  const place = (picture: ReturnType<typeof layout>, id: string): [number, number] => {
    const item = picture.items.find(other => other.id === `op:${id}`);
    assert.ok(item, id);
    return [item.x, item.y];
  };
  const wide = layout(548);
  const [[thenX, thenY], [elseX, elseY]] = [place(wide, 'branch/then/exp'), place(wide, 'branch/else/sub')];
  assert.ok(elseX > thenX + 150 && elseY === thenY);
  const narrow = layout(300);
  assert.ok(place(narrow, 'branch/else/sub')[1] > place(narrow, 'branch/then/add')[1]);
  for (const picture of [wide, narrow]) {
    assert.deepEqual(misplaced(picture), []);
    assert.deepEqual(
      texts(picture)
        .map(({ text }) => text)
        .filter(text => text === 'then' || text === 'else'),
      ['then', 'else']
    );
  }
});

test('a loop is a frame with its head as it is written and how often it turns', () => {
  const flow = flowOf(report(branch));
  const open = new Set(['cluster_0', 'op:loop', 'op:loop_1']);
  const words = texts(layoutClusters(flow, { width: 548, measure, open, linked: null })).map(({ text }) => text);
  assert.ok(words.includes('for i in range(1, x.shape[0]) · 99,999 iterations'), words.join('\n'));
  assert.ok(words.includes('while np.abs(z).max() > 1 · until its test says no'));
});

test('in the map a branch opens both of its sides beside one another', async () => {
  const tree = new GraphTree(flowOf(report(branch)));
  const scene = new Scene(tree, measure);
  const named = (id: string) => all(tree.roots, tree).find(box => box.id === id);
  const [cluster] = tree.roots;
  const kernel = all(tree.roots, tree).find(box => box.kind === 'kernel' && box.ops.some(op => op.name === 'branch'));
  const box = named('branch');
  assert.ok(cluster && kernel && box);
  for (const each of [cluster, kernel, box]) {
    scene.toggle(each);
  }
  const { groups, jobs } = scene.jobs();
  const made = await new Layouter(() => null).run(jobs);
  assert.ok(made);
  scene.take(groups, made);
  const sides = tree.childrenOf(box);
  assert.deepEqual(
    sides.map(side => [side.name, scene.isOpen(side), side.count]),
    [
      ['then', true, 3],
      ['else', true, 2]
    ]
  );
  const [left, right] = sides.map(side => scene.rectOf(side));
  assert.ok(left && right && right.x >= left.x + left.width);
  assert.ok(left.y < right.y + right.height && right.y < left.y + left.height); // at one height
  assert.equal(named('loop')?.name, 'for i in range(1, x.shape[0])');
});

test('a closed box is as wide as its words, and what is too long for any keeps its ends', () => {
  const tree = new GraphTree(flowOf(report(softmax)));
  const scene = new Scene(tree, measure);
  for (const box of all(tree.roots, tree)) {
    const [width] = scene.sizeOf(box);
    const time = box.seconds === null ? '' : duration(box.seconds);
    const name = measure(box.name, 'name') + (time && box.kind !== 'op' ? measure(time, 'name') + 8 : 0);
    assert.ok(name + (box.kind === 'op' ? 10 : 20) <= width, box.name);
    if (box.kind === 'cluster' || box.kind === 'kernel') {
      assert.equal(fitting(factsOf(box), width - 20, 'note', measure), factsOf(box).join(' · '));
    }
  }
  const short = shorten('standard_deviation_of_columns_1', 110, 'name', measure);
  assert.ok(/^standa.*….*_1$/.test(short) && measure(short, 'name') <= 110, short);
  const facts = ['10 operations', '2 kernels', 'lines 3–7', '194 MB'];
  assert.equal(fitting(facts, 160, 'note', measure), '10 operations · 2 kernels');
});

test('the small picture of the map frames what the screen shows, and is gone where that is all', () => {
  const screen = { width: 800, height: 600 };
  assert.equal(minimapPlace({ width: 700, height: 500 }, { x: -50, y: -50, scale: 1 }, screen), null);
  const place = minimapPlace({ width: 13_200, height: 4_800 }, { x: 6_600, y: 2_400, scale: 1 }, screen);
  assert.ok(place);
  assert.deepEqual([place.width, place.height, place.scale], [132, 48, 0.01]);
  assert.deepEqual(place.view, { left: 66, top: 24, width: 8, height: 6 });
  const beside = minimapPlace({ width: 13_200, height: 4_800 }, { x: 99_000, y: -9_000, scale: 4 }, screen);
  assert.ok(beside && beside.view.left + beside.view.width <= 132 && beside.view.top === 0);
});

/** A screen of small boxes in columns, each with a name that is wider than it. */
function crowded(columns: number, rows: number, kind: Wanted['kind'] = 'closed'): { wanted: Wanted[]; room: Room } {
  const room = new Room(560, 420);
  const [wide, tall] = [560 / columns, 420 / rows];
  const wanted = Array.from({ length: columns * rows }, (_, at): Wanted => {
    const box = { x: (at % columns) * wide + 2, y: Math.floor(at / columns) * tall + 2, width: wide / 3, height: 7 };
    room.take(box);
    const text = `k${at}`;
    return {
      ...{ text, width: measure(text, 'note'), short: { text, width: measure(text, 'note') }, box },
      ...{ around: null, level: 0, lit: false, seconds: (at * 7919) % 101, kind }
    };
  });
  return { wanted, room };
}

test('at every zoom the slowest are named, beside their boxes, and no label lies on another', () => {
  for (const [columns, rows] of [
    [2, 5],
    [5, 12],
    [12, 30],
    [40, 52]
  ] as const) {
    const { wanted, room } = crowded(columns, rows);
    const slowest = [...wanted].sort((a, b) => b.seconds - a.seconds).slice(0, 5);
    const placed = placeLabels(wanted, room, []);
    const names = new Set(placed.map(({ text }) => text));
    assert.ok(placed.length >= 10 && placed.length <= 94, `${placed.length} names`);
    const named = slowest.map(({ text }) => names.has(text));
    assert.ok(named[0] && named.filter(Boolean).length >= 4, `${columns} by ${rows}: ${named.join()}`);
    placed.forEach((a, at) => {
      assert.ok(a.x >= 0 && a.y >= 0 && a.x + a.width <= 560 && a.y + a.height <= 420, a.text);
      for (const b of placed.slice(at + 1)) {
        const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        assert.ok(apart, `${a.text} on ${b.text}`);
      }
    });
    if (columns <= 5) {
      const onBoxes = placed.filter(({ x, y, width, height }) =>
        wanted.some(
          ({ box }) => x < box.x + box.width && box.x < x + width && y < box.y + box.height && box.y < y + height
        )
      );
      assert.deepEqual(onBoxes, [], 'where there is room beside the boxes no name stands on one');
    }
  }
});

test('what is pointed at is named first; a group keeps its name where nothing is free', () => {
  const { wanted, room } = crowded(40, 52, 'operation');
  const last = wanted.at(-1);
  assert.ok(last);
  last.lit = true;
  const group: Wanted = {
    ...{ text: 'cluster_0 1.0 ms', width: 98, short: { text: 'cluster_0', width: 55 } },
    ...{
      box: { x: 100, y: 100, width: 60, height: 200 },
      around: null,
      level: 0,
      lit: false,
      seconds: 1000,
      kind: 'group'
    }
  };
  const placed = placeLabels([...wanted, group], room, []);
  assert.equal(placed[0]?.text, last.text);
  assert.equal(placed[1]?.text, 'cluster_0', 'its time would stand in the box beside it');
});

test('a line of the editor leads to its operations in the map, and to what they lie in while that is closed', async () => {
  const selection = new Selection();
  const shown = report(softmax);
  selection.show(shown);
  const small = new GraphTree(flowOf(shown));
  const exp = shown.ops.find(({ name }) => name === 'exp');
  const [at] = exp?.lines ?? [];
  assert.ok(exp && at);
  selection.hover(`line:${at.file}:${at.line}`);
  const { boxes, around } = foundIn(selection, small);
  assert.ok(boxes.some(({ op }) => op === exp));
  const cluster = small.roots.find(({ name }) => name === 'cluster_0');
  assert.ok(cluster && around.has(cluster));
  const scene = new Scene(small, measure);
  const layOut = async (): Promise<void> => {
    const { groups, jobs } = scene.jobs();
    scene.take(groups, (await new Layouter(() => null).run(jobs)) ?? []);
  };
  await layOut();
  const box = boxes.find(({ op }) => op === exp);
  assert.ok(box);
  assert.equal(scene.rectOf(box), null);
  assert.deepEqual(scene.shownRectOf(box), scene.rectOf(cluster));
  scene.reveal(box);
  await layOut();
  assert.deepEqual(scene.shownRectOf(box), scene.rectOf(box));
  selection.hover('cluster_0');
  assert.deepEqual(foundIn(selection, small).boxes, []);
});
