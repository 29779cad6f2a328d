import { isRecord, list, number, records, text } from './read';

/** A file that the report's positions speak of, as it was when it was compiled. */
export interface Source {
  /** As in the positions. */
  file: string;
  /** The notebook's cell, where it is one. */
  cell: string | null;
  path: string | null;
  /** The number of the first of `lines`. */
  first: number;
  lines: string[];
}

/** The earlier runs of a cell, and the baselines that were pinned. */
export interface History {
  /** The run that the report is of. */
  run: number;
  runs: Run[];
  baselines: string[];
}

export interface Run {
  run: number;
  seconds: number | null;
  calls: number;
  fingerprint: string;
  retraces: number;
  error: string | null;
}

export function readSources(value: unknown): Source[] {
  return records(value).map(source => ({
    file: text(source.file),
    cell: text(source.cell) || null,
    path: text(source.path) || null,
    first: number(source.first) ?? 1,
    lines: list(source.lines).map(text)
  }));
}

/** Null where the report keeps none: a saved one, or of a kernel that was just started. */
export function readHistory(value: unknown): History | null {
  if (!isRecord(value)) {
    return null;
  }
  return {
    run: number(value.run) ?? 0,
    runs: records(value.runs).map(run => ({
      run: number(run.run) ?? 0,
      seconds: number(run.seconds),
      calls: number(run.calls) ?? 0,
      fingerprint: text(run.fingerprint),
      retraces: number(run.retraces) ?? 0,
      error: text(run.error) || null
    })),
    baselines: list(value.baselines).filter(name => typeof name === 'string' && name !== '') as string[] // sent back so
  };
}

const NO_PROMPT = 'In [ ]';

/** A saved report leaves its cell's prompt out, because that changes with each run: the notebook puts its own there. */
export function prompted(report: unknown, count: number | null | undefined): unknown {
  const cell = isRecord(report) ? report.cell : null;
  if (!isRecord(cell) || cell.execution_count !== null || cell.title !== NO_PROMPT || typeof count !== 'number') {
    return report;
  }
  const prompt = `In [${count}]`;
  const of = (value: unknown): unknown =>
    typeof value === 'string'
      ? value.replaceAll(NO_PROMPT, prompt)
      : Array.isArray(value)
        ? value.map(of)
        : isRecord(value)
          ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === 'source' ? item : of(item)]))
          : value;
  const whole = of(report) as Record<string, unknown>;
  const { sources } = report as Record<string, unknown>;
  const own = records(sources);
  return {
    ...whole,
    ...(sources !== undefined && {
      sources: records(whole.sources).map((source, at) => ({ ...source, lines: own[at]?.lines }))
    })
  };
}
