/** A report of any number of operations: a long chain of layers, each a cluster, with the host in between. */
export function hugeReport(operations: number): unknown {
  const perCluster = Math.max(20, Math.ceil(operations / 44));
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
        kernel: `k${part}`,
        lines: [['<cell 1>', 1 + (index % 40), 0, 1, 9]],
        shape: [128, 256],
        dtype: 'float32',
        inputs: at ? [`op_${at - 1}`] : []
      });
      spans.push({ name: `op_${at}`, label: 'MatMul', kind: 'op', start: time, duration: 3 + (at % 7), cluster: null });
      time += 4 + (at % 7);
    }
    const seconds = 1e-3 / (1 + part);
    clusters.push({
      name,
      plan: 'model #1',
      color: part % 6,
      ops: names,
      kernels: [`k${part}`],
      calls: 1,
      seconds,
      lines: [1, 2, 3]
    });
    kernels.push({
      name: `k${part}`,
      cluster: name,
      ops: names,
      kind: 'nest',
      lines: [1, 2, 3],
      calls: 1,
      seconds,
      bound: 'memory',
      of_peak: 0.5
    });
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
    boundaries: [],
    retraces: [],
    fallbacks: [],
    timeline: { lanes: [{ name: 'op by op', spans }] }
  };
}
