import { fileName, lineRanges } from '../../base/format';
import { lineMarks, type LineMark } from './lines';
import { lineId, lineKey, type Linked, type Links } from '../../report/links';
import type { Cluster, Operation, Report, Source } from '../../report/report';
import type { Code, CodeLine } from '../../report/answers';

/** A line of the source with what jitlab says of it. */
export interface SourceRow {
  id: string;
  line: number;
  text: string;
  mark: LineMark | null;
}

/** A line of generated code, or what stands for the lines that are folded. */
export interface CodeRow {
  /** "" for the fold. */
  id: string;
  number: number;
  text: string;
  code: CodeLine | null;
  /** The lines of the source that it came from, as short as they fit: `4 5`. */
  from: string;
}

/** Pure: the files that the report's lines speak of; of a report that keeps none, the cell itself. */
export function sourcesOf(report: Report): Source[] {
  if (report.sources.length) {
    return report.sources;
  }
  const { source, id, title } = report.cell;
  const files = report.ops.flatMap(op => op.lines.map(({ file }) => file));
  const file = files.find(name => fileName(name) === title) ?? title;
  return source.length ? [{ file, cell: id, path: '', first: 1, lines: source }] : [];
}

export function sourceRows(report: Report, source: Source): SourceRow[] {
  const marks = new Map(lineMarks(report).map(mark => [mark.id, mark]));
  return source.lines.map((text, at) => {
    const line = source.first + at;
    const id = lineId(source.file, line);
    return { id, line, text, mark: marks.get(id) ?? null };
  });
}

/** Pure: the rows of a pane. Noise is one row with its count, until it is unfolded. Made once: every pin asks for them. */
export function codeRows(code: Code, clusterId: string, unfolded: boolean): readonly CodeRow[] {
  const key = `${unfolded ? 'all' : 'folded'} ${clusterId}`;
  const known = ROWS.get(code) ?? new Map<string, CodeRow[]>();
  const rows = known.get(key) ?? makeRows(code, clusterId, unfolded);
  ROWS.set(code, known.set(key, rows));
  return rows;
}

const ROWS = new WeakMap<Code, Map<string, CodeRow[]>>();

function makeRows(code: Code, clusterId: string, unfolded: boolean): CodeRow[] {
  const rows: CodeRow[] = [];
  let folded = 0;
  code.lines.forEach((line, at) => {
    if (line.noise && !unfolded) {
      folded++;
      return;
    }
    rows.push({
      id: `code:${code.stage}:${at + 1}@${clusterId}`,
      number: at + 1,
      text: line.text,
      code: line,
      from: lineRanges(line.at.map(position => position.line)).replaceAll(', ', ' ')
    });
  });
  if (folded > 0) {
    const text = `${folded} ${folded === 1 ? 'line' : 'lines'} without a cell line folded`;
    rows.push({ id: '', number: 0, text, code: null, from: '' });
  }
  return rows;
}

/** Pure: whether a line of code belongs to what is pointed at. */
export function isLit(row: CodeRow, plan: string, linked: Linked, links: Links): boolean {
  const { code } = row;
  if (!code || linked.kind === 'none' || linked.kind === 'cluster') {
    return false;
  }
  if (row.id === linked.id) {
    return true;
  }
  if (linked.kind === 'kernel') {
    return code.kernel !== null && linked.kernels.has(links.idOf(code.kernel, plan));
  }
  const shares = code.at.some(position => linked.lines.has(lineKey(position)));
  if (linked.kind === 'line') {
    return shares;
  }
  return code.ops.length && linked.ops.size ? code.ops.some(op => linked.ops.has(links.idOf(op, plan))) : shares;
}

/** Pure: the clusters whose code can be read; traces that came to the same plan have it once. */
export function clustersToRead({ clusters, plans }: Report): Cluster[] {
  const alike = new Set(plans.filter(({ name, like }) => like !== '' && like !== name).map(({ name }) => name));
  return clusters.filter(({ plan }) => !alike.has(plan));
}

/** Pure: the cluster whose code is read: of what is pinned, else the one that was read, else the slowest. */
export function clusterToRead(report: Report, links: Links, pinned: Linked | null, read: string): Cluster | null {
  const all = clustersToRead(report);
  const of = (wanted: (id: string) => boolean): Cluster | undefined =>
    all.find(({ name, plan }) => wanted(links.idOf(name, plan)));
  const pinnedThere = all.some(({ name, plan }) => pinned?.clusters.has(links.idOf(name, plan)));
  const slowest = [...all].sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0))[0];
  if (pinned && pinnedThere && !pinned.clusters.has(read)) {
    return of(id => pinned.clusters.has(id)) ?? null;
  }
  return of(id => id === read) ?? slowest ?? null;
}

/** Pure: the file to show: of what is pinned, else the one with most of the marked lines. */
export function sourceToRead(sources: readonly Source[], report: Report, pinned: Linked | null, read: string): string {
  const pinnedFile = [...(pinned?.lines ?? [])].map(key => key.slice(0, key.lastIndexOf(':')));
  const there = (file: string): boolean => sources.some(source => source.file === file);
  if (pinnedFile.includes(read) && there(read)) {
    return read;
  }
  const wanted = pinnedFile.find(there) ?? (there(read) ? read : undefined);
  if (wanted !== undefined) {
    return wanted;
  }
  const counts = new Map<string, number>();
  for (const { lines } of report.ops) {
    for (const { file } of lines) {
      counts.set(file, (counts.get(file) ?? 0) + 1);
    }
  }
  const most = [...sources].sort((a, b) => (counts.get(b.file) ?? 0) - (counts.get(a.file) ?? 0))[0];
  return most?.file ?? '';
}

/** Columns of a pinned operation in a line, as [start, end]; only where they are told, and counted as the text counts. */
export function columnsOf(ops: readonly Operation[], row: SourceRow): [number, number] | null {
  // Columns are counted in bytes: in a line of other than ASCII they would point beside it.
  if (!/^[\x20-\x7e\t]*$/.test(row.text)) {
    return null;
  }
  const spans = ops
    .flatMap(op => op.lines)
    .filter(position => lineId(position.file, position.line) === row.id && position.columns)
    .map(({ columns }) => columns as [number, number])
    .filter(([start, end]) => start >= 0 && end > start && end <= row.text.length);
  return spans.length ? [Math.min(...spans.map(([start]) => start)), Math.max(...spans.map(([, end]) => end))] : null;
}
