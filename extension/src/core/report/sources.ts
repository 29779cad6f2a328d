import { isRecord, records } from '../base/read';

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
