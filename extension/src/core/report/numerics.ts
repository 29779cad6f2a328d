import { joined, lines, some } from '../base/format';
import type { Checked } from './report';

/** `6 ULP`: rounded up, so that what it says is never less than what is. */
export function ulps(count: number): string {
  return count < 10
    ? `${Math.ceil(count * 10 - 1e-9) / 10} ULP`
    : count < 1e7
      ? `${Math.ceil(count - 1e-9).toLocaleString('en-US')} ULP`
      : `${count.toExponential(1)} ULP`;
}

/** "within 6 ULP of NumPy", of one cluster or of all; "" where nothing was checked. */
export function closeness(rows: readonly Checked[]): string {
  const wrong = rows.filter(({ ok }) => !ok);
  if (rows.length === 0) {
    return '';
  }
  if (wrong.length) {
    return rows.length === 1 ? 'out of bounds of NumPy' : `${wrong.length} of ${rows.length} outputs out of bounds`;
  }
  const most = Math.max(...rows.map(({ maxUlp }) => maxUlp ?? 0));
  const apart = rows.some(row => row.differing !== 0 && (row.maxUlp ?? 1) > 0);
  return !apart && most === 0 ? 'the same bits as NumPy' : most > 0 ? `within ${ulps(most)} of NumPy` : 'within bounds';
}

/** Of alike plans the worst row of each output stands for the others. */
export function worstRows(rows: readonly Checked[], plans: readonly { name: string; like: string }[]): Checked[] {
  const like = new Map(plans.map(plan => [plan.name, plan.like || plan.name]));
  const worst = new Map<string, Checked>();
  for (const row of rows) {
    const key = `${like.get(row.plan) ?? row.plan}\n${row.output}`;
    const before = worst.get(key);
    if (!before || (before.ok && !row.ok) || (before.ok === row.ok && (row.maxUlp ?? 0) > (before.maxUlp ?? 0))) {
      worst.set(key, row);
    }
  }
  return [...worst.values()];
}

/** The heading of the list: how many, and how near. */
export function checkedHead(rows: readonly Checked[]): string {
  const wrong = rows.filter(({ ok }) => !ok).length;
  const loose = rows.filter(({ boundUlp }) => boundUlp === null).length;
  return wrong
    ? `${wrong} of ${some(rows.length, 'output')} outside ${rows.length === 1 ? 'its bound' : 'their bounds'} beside NumPy`
    : rows.every(({ differing }) => differing === 0)
      ? `${some(rows.length, 'output')} checked: the same bits as NumPy`
      : loose === rows.length
        ? `${some(loose, 'output')} beside NumPy, no bound stated`
        : loose
          ? `${some(rows.length - loose, 'output')} within bounds beside NumPy, ${loose} without a stated bound`
          : rows.length === 1
            ? '1 output within its bound beside NumPy'
            : `all ${rows.length} outputs within their bounds beside NumPy`;
}

/** What is said of one output: how far it is off, and what is allowed. */
export function checkedTexts(row: Checked): { name: string; where: string; off: string; why: string } {
  const near = row.nearest?.ulp ?? row.maxUlp;
  const size = near === null ? (row.maxAbs === null ? 'no number' : row.maxAbs.toPrecision(2)) : ulps(near);
  const isSame = row.differing === 0 || row.maxUlp === 0;
  const allowed = row.boundUlp === null ? 'no bound is stated' : `${ulps(row.boundUlp)} allowed`;
  return {
    name: row.called || row.word || row.op || row.output,
    where: joined(' · ', lines(row.lines), row.cluster),
    // The largest of all elements, which the cluster's box says, may be of one whose terms cancel.
    off: isSame
      ? 'same bits'
      : `${size}, ${allowed}${(row.maxUlp ?? 0) > (near ?? 0) ? `; within ${ulps(row.maxUlp ?? 0)} of NumPy` : ''}`,
    why: row.ok ? '' : (row.guilty?.text ?? row.note)
  };
}
