const KERNELS = 4;

/**
 * A report of any number of operations: 44 layers, each a cluster of four kernels whose operations branch and join; between
 * kernels a value that did not fuse. Every operation has a span where NumPy ran it and one where it was compiled.
 */
export function hugeReport(operations: number): unknown {
  const perCluster = Math.max(20, Math.ceil(operations / 44));
  const perKernel = Math.ceil(perCluster / KERNELS);
  const boundaries: unknown[] = [];
  const ran: unknown[] = [];
  const ops: unknown[] = [];
  const clusters: unknown[] = [];
  const kernels: unknown[] = [];
  const spans: unknown[] = [];
  let time = 0;
  for (let at = 0, part = 0; at < operations; part++) {
    const names: string[] = [];
    const name = `cluster_${part}`;
    for (let index = 0; index < perCluster && at < operations; index++, at++) {
      names.push(`op_${at}`);
      ops.push({
        name: `op_${at}`,
        plan: 'model #1',
        op: ['MatMul', 'AddV2', 'Maximum', 'Mul', 'Sum'][at % 5],
        cluster: name,
        kernel: `k${part * KERNELS + Math.floor(index / perKernel)}`,
        lines: [['<cell 1>', 1 + (index % 40), 0, 1, 9]],
        shape: [128, 256],
        dtype: 'float32',
        inputs: [1, at % 3 === 0 ? 4 : 0, at % 11 === 0 ? 9 : 0]
          .filter(back => back > 0 && back <= at)
          .map(back => `op_${at - back}`)
      });
      if (index > 0 && index % perKernel === 0) {
        boundaries.push({
          plan: 'model #1',
          producer: `op_${at - 1}`,
          consumer: `op_${at}`,
          reason: { code: 'read_again', text: `op_${at - 1} is read again` },
          bytes: 131_072,
          would_fuse_if: null
        });
      }
      ran.push({ ...span(at, time / 8, (3 + (at % 7)) / 8), kind: 'kernel', cluster: name });
      spans.push(span(at, time, 3 + (at % 7)));
      time += 4 + (at % 7);
    }
    const seconds = 1e-3 / (1 + part);
    clusters.push({
      name,
      plan: 'model #1',
      color: part % 6,
      ops: names,
      kernels: Array.from({ length: KERNELS }, (_, index) => `k${part * KERNELS + index}`),
      calls: 1,
      seconds,
      lines: [1, 2, 3]
    });
    for (let index = 0; index < KERNELS; index++) {
      kernels.push({
        name: `k${part * KERNELS + index}`,
        cluster: name,
        ops: names.slice(index * perKernel, (index + 1) * perKernel),
        kind: 'nest',
        lines: [1, 2, 3],
        calls: 1,
        seconds: seconds / KERNELS,
        bound: 'memory',
        of_peak: 0.5
      });
    }
  }
  return {
    version: 1,
    cell: { id: 'huge', title: 'In [31]', source: ['model(x)'], running: false, error: null },
    verdict: {
      lead: `All ${operations.toLocaleString('en-US')} operations compiled`,
      operations,
      compiled: operations,
      clusters: clusters.length,
      kernels: kernels.length,
      host: 0,
      retraces: 0,
      seconds: 0.0045,
      numpy_seconds: null,
      next: null
    },
    plans: [{ name: 'model #1', function: 'model', trace: 1 }],
    ops,
    clusters,
    kernels,
    boundaries,
    retraces: [],
    fallbacks: [],
    timeline: {
      lanes: [
        { name: 'op by op', group: 'op by op', spans },
        { name: 'kernels', group: 'compiled', spans: ran }
      ]
    }
  };
}

function span(at: number, start: number, duration: number): Record<string, unknown> {
  return { name: `op_${at}`, label: 'MatMul', kind: 'op', plan: 'model #1', start, duration, cluster: null };
}
