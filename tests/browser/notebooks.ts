/** Notebooks and saved reports that tests write. */

interface Report {
  cell: { source: string[] } & Record<string, unknown>;
  [key: string]: unknown;
}

export function notebookOf(cells: object[]): object {
  const kernelspec = { name: 'python3', display_name: 'Python 3', language: 'python' };
  return { nbformat: 4, nbformat_minor: 5, metadata: { kernelspec, language_info: { name: 'python' } }, cells };
}

export function codeCell(id: string, source: string): { outputs: object[] } & Record<string, unknown> {
  return { cell_type: 'code', id, metadata: {}, execution_count: null, outputs: [], source };
}

export function reportCell(id: string, report: Report, html = ''): object {
  const data = { 'application/vnd.jitlab.report+json': report, 'text/html': html, 'text/plain': 'report' };
  return {
    ...codeCell(id, report.cell.source.join('\n')),
    execution_count: 2,
    outputs: [{ output_type: 'display_data', metadata: {}, data }]
  };
}

/** A report as a notebook keeps it: one cluster of two operations. */
export function savedReport(id: string, source: string[], name: string): Report {
  const op = (own: string, kind: string, inputs: string[]): object => ({
    name: own,
    plan: 'In [2] #1',
    op: kind,
    cluster: 'cluster_0',
    kernel: 'k0',
    reason: null,
    lines: [['In [2]', 1, 4, 1, 9]],
    shape: [1000],
    dtype: 'float64',
    inputs,
    scope: '',
    seconds: null
  });
  const cost = { calls: 1, seconds: 0.0006, flops: 2000, bytes_read: 8000, bytes_written: 8000, lines: [1] };
  return {
    version: 1,
    cell: { id, execution_count: 2, title: 'In [2]', source, running: false, error: null },
    verdict: {
      lead: 'All 2 operations compiled',
      operations: 2,
      compiled: 2,
      clusters: 1,
      kernels: 1,
      host: 0,
      retraces: 0,
      seconds: 0.0006,
      numpy_seconds: null,
      next: null
    },
    plans: [{ name: 'In [2] #1', function: 'In [2]', trace: 1 }],
    ops: [op(name, name, ['x']), op('add', 'AddV2', [name])],
    clusters: [
      {
        name: 'cluster_0',
        plan: 'In [2] #1',
        color: 0,
        pattern: 'solid',
        ops: [name, 'add'],
        kernels: ['k0'],
        reason: { code: 'auto', text: `joined by ${name}` },
        ...cost
      }
    ],
    kernels: [
      { name: 'k0', cluster: 'cluster_0', ops: [name, 'add'], kind: 'nest', bound: 'memory', of_peak: 0.9, ...cost }
    ],
    boundaries: [],
    retraces: [],
    fallbacks: [],
    timeline: {
      lanes: [
        {
          name: 'compiled',
          spans: [{ name: 'cluster_0', label: name, kind: 'launch', start: 0, duration: 600, cluster: 'cluster_0' }]
        }
      ]
    }
  };
}
