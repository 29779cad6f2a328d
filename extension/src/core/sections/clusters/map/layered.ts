/** Boxes of one group and the edges between them, by index; what a layout needs and no more, so that a worker can have it. */
export interface LayeredGraph {
  widths: ArrayLike<number>;
  heights: ArrayLike<number>;
  from: ArrayLike<number>;
  to: ArrayLike<number>;
  /** Width over height that a long chain is folded towards. */
  aspect: number;
}

export interface Layered {
  /** Top left corners. */
  x: number[];
  y: number[];
  width: number;
  height: number;
  /** One an edge, in the order given: points x, y, x, y … from the producer's lower edge to the consumer's upper one. */
  routes: number[][];
}

/**
 * Layers by longest path, barycentre order, places by least squares. Edges that span up to four ranks have places of their
 * own between the boxes; longer ones go straight. Ranks that are too many for their width are folded into columns.
 *
 * It is handed to a worker as its own text: nothing outside of it may be named in it. A test holds this.
 */
export function layered(graph: LayeredGraph): Layered {
  const GAP = 14;
  const RANK = 22;
  const COLUMN = 36;
  const MOST_RANKS = 4;
  const WIDEST = 1800;
  const count = graph.widths.length;
  const edges = graph.from.length;
  const at = (values: ArrayLike<number>, index: number): number => values[index] ?? 0;

  // Ranks. An edge against the order of the boxes (a cycle between groups) has no say.
  const rank = new Array<number>(count).fill(0);
  const before: number[][] = Array.from({ length: count }, () => []);
  const after: number[][] = Array.from({ length: count }, () => []);
  for (let edge = 0; edge < edges; edge++) {
    const from = at(graph.from, edge);
    const to = at(graph.to, edge);
    if (from < to) {
      before[to]?.push(from);
      after[from]?.push(to);
    }
  }
  for (let node = 0; node < count; node++) {
    for (const source of before[node] ?? []) {
      rank[node] = Math.max(at(rank, node), at(rank, source) + 1);
    }
  }
  for (let node = count - 1; node >= 0; node--) {
    const readers = after[node] ?? [];
    if (readers.length > 0 && before[node]?.length === 0) {
      rank[node] = Math.min(...readers.map(reader => at(rank, reader))) - 1; // a constant stands beside its first reader
    }
  }

  // Boxes first, then the places that edges take on the ranks that they cross.
  const widths: number[] = Array.from({ length: count }, (_, node) => at(graph.widths, node));
  const heights: number[] = Array.from({ length: count }, (_, node) => at(graph.heights, node));
  const up: number[][] = Array.from({ length: count }, () => []);
  const down: number[][] = Array.from({ length: count }, () => []);
  const bends: number[][] = Array.from({ length: edges }, () => []);
  for (let edge = 0; edge < edges; edge++) {
    const from = at(graph.from, edge);
    const to = at(graph.to, edge);
    const span = at(rank, to) - at(rank, from);
    if (from >= to || span > MOST_RANKS) {
      continue;
    }
    let last = from;
    for (let step = 1; step <= span; step++) {
      let next = to;
      if (step < span) {
        next = widths.length;
        widths.push(2);
        heights.push(0);
        up.push([]);
        down.push([]);
        rank.push(at(rank, from) + step);
        bends[edge]?.push(next);
      }
      down[last]?.push(next);
      up[next]?.push(last);
      last = next;
    }
  }
  const ranks: number[][] = [];
  for (let node = 0; node < widths.length; node++) {
    (ranks[at(rank, node)] ??= []).push(node);
  }
  for (let level = 0; level < ranks.length; level++) {
    ranks[level] ??= [];
  }

  // Order within a rank: towards the middle of what is joined, down and up in turn.
  const place = new Array<number>(widths.length).fill(0);
  const number = (row: readonly number[]): void => {
    row.forEach((node, index) => {
      place[node] = index;
    });
  };
  ranks.forEach(number);
  const sweep = (row: number[], joined: readonly number[][]): void => {
    const middle = new Map<number, number>();
    for (const node of row) {
      const others = joined[node] ?? [];
      middle.set(
        node,
        others.length ? others.reduce((sum, other) => sum + at(place, other), 0) / others.length : at(place, node)
      );
    }
    row.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0) || a - b);
    number(row);
  };
  for (let round = 0; round < 3; round++) {
    for (let level = 1; level < ranks.length; level++) {
      sweep(ranks[level] ?? [], up);
    }
    for (let level = ranks.length - 2; level >= 0; level--) {
      sweep(ranks[level] ?? [], down);
    }
  }

  // A rank that is too wide stands in several rows.
  const rows: number[][] = [];
  for (const row of ranks) {
    let part: number[] = [];
    let wide = 0;
    for (const node of row) {
      if (part.length && wide + at(widths, node) > WIDEST) {
        rows.push(part);
        part = [];
        wide = 0;
      }
      part.push(node);
      wide += at(widths, node) + GAP;
    }
    rows.push(part);
  }

  // Middles: each as near to what it is joined with as the others of its row let it. Neighbours that would overlap move as one.
  const middle = new Array<number>(widths.length).fill(0);
  const settle = (row: readonly number[], wanted: (node: number) => number): void => {
    const blocks: { sum: number; weight: number; nodes: number[]; offsets: number[]; size: number }[] = [];
    for (const node of row) {
      const weight = at(heights, node) === 0 ? 4 : 1; // an edge that passes is kept straight
      let block = { sum: wanted(node) * weight, weight, nodes: [node], offsets: [0], size: 0 };
      for (let last = blocks.at(-1); last; last = blocks.at(-1)) {
        const gap = at(widths, last.nodes.at(-1) ?? 0) / 2 + GAP + at(widths, block.nodes[0] ?? 0) / 2;
        if (last.sum / last.weight + last.size + gap <= block.sum / block.weight) {
          break;
        }
        const shift = last.size + gap;
        blocks.pop();
        block = {
          sum: last.sum + block.sum - shift * block.weight,
          weight: last.weight + block.weight,
          nodes: last.nodes.concat(block.nodes),
          offsets: last.offsets.concat(block.offsets.map(offset => offset + shift)),
          size: shift + block.size
        };
      }
      blocks.push(block);
    }
    for (const block of blocks) {
      block.nodes.forEach((node, index) => {
        middle[node] = block.sum / block.weight + at(block.offsets, index);
      });
    }
  };
  for (const row of rows) {
    let wide = -GAP;
    for (const node of row) {
      wide += at(widths, node) + GAP;
    }
    let left = -wide / 2;
    for (const node of row) {
      middle[node] = left + at(widths, node) / 2;
      left += at(widths, node) + GAP;
    }
  }
  const mean = (nodes: readonly number[], node: number): number =>
    nodes.length ? nodes.reduce((sum, other) => sum + at(middle, other), 0) / nodes.length : at(middle, node);
  for (let round = 0; round < 3; round++) {
    for (const row of rows) {
      settle(row, node => mean(up[node] ?? [], node));
    }
    for (let level = rows.length - 1; level >= 0; level--) {
      settle(rows[level] ?? [], node => mean([...(down[node] ?? []), ...(up[node] ?? [])], node));
    }
  }

  // Ranks below one another, and a long chain in columns beside one another.
  const tall = rows.map(row => row.reduce((most, node) => Math.max(most, at(heights, node)), 0));
  const extent = (from: number, to: number): [number, number] => {
    let [left, right] = [Infinity, -Infinity];
    for (const row of rows.slice(from, to)) {
      for (const node of row) {
        left = Math.min(left, at(middle, node) - at(widths, node) / 2);
        right = Math.max(right, at(middle, node) + at(widths, node) / 2);
      }
    }
    return right > left ? [left, right] : [0, 0];
  };
  const whole = tall.reduce((sum, height) => sum + height + RANK, -RANK);
  const [leftmost, rightmost] = extent(0, rows.length);
  const columns = Math.max(1, Math.floor(Math.sqrt((whole * graph.aspect) / (rightmost - leftmost + COLUMN))));
  const target = columns > 1 && whole > 700 ? whole / columns : Infinity;
  const y = new Array<number>(widths.length).fill(0);
  const column = new Array<number>(widths.length).fill(0);
  const lefts: number[] = [];
  let left = 0;
  let height = 0;
  let first = 0;
  let columnIndex = 0;
  while (first < rows.length) {
    let end = first;
    let used = 0;
    while (end < rows.length && (end === first || used + at(tall, end) <= target)) {
      used += at(tall, end) + RANK;
      end++;
    }
    const [from, to] = extent(first, end);
    lefts.push(left);
    let top = 0;
    for (let level = first; level < end; level++) {
      for (const node of rows[level] ?? []) {
        middle[node] = left + at(middle, node) - from;
        y[node] = top + (at(tall, level) - at(heights, node)) / 2;
        column[node] = columnIndex;
      }
      top += at(tall, level) + RANK;
    }
    height = Math.max(height, top - RANK);
    left += to - from + COLUMN;
    columnIndex++;
    first = end;
  }

  // Routes: through the places that an edge has; from one column to a later one through the gaps beside them.
  const routes = bends.map((through, edge) => {
    const from = at(graph.from, edge);
    const to = at(graph.to, edge);
    const route = [at(middle, from), at(y, from) + at(heights, from)];
    let last = from;
    for (const next of [...through, to]) {
      if (column[next] !== column[last]) {
        const gap = at(lefts, at(column, next)) - COLUMN / 2;
        route.push(at(middle, last), at(y, last) + at(heights, last) + RANK / 2);
        route.push(gap, at(y, last) + at(heights, last) + RANK / 2, gap, at(y, next) - RANK / 2);
        route.push(at(middle, next), at(y, next) - RANK / 2);
      }
      route.push(at(middle, next), at(y, next));
      last = next;
    }
    return route;
  });
  return {
    x: Array.from({ length: count }, (_, node) => at(middle, node) - at(widths, node) / 2),
    y: y.slice(0, count),
    width: Math.max(0, left - COLUMN),
    height: Math.max(0, height),
    routes
  };
}
