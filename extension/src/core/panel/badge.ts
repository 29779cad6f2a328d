import { h, icon } from '../base/dom';
import { duration, joined, some, spread } from '../base/format';
import { swatch } from '../base/marks';
import type { Report } from '../report/report';

/** One part of the badge line: what a user reads of a cell before opening anything. */
export interface BadgePart {
  kind: 'compiled' | 'kernels' | 'host' | 'retraces' | 'python' | 'settled' | 'time' | 'error' | 'numpy';
  text: string;
}

/**
 * Pure: `10.0 s this run: 227 ms work, 8.2 s compiling · about 5 × faster · 21/22 compiled · 4 kernels · 5 retraces`; what is
 * zero is left out.
 */
export function badgeParts(report: Report): BadgePart[] {
  const { verdict, cell } = report;
  const parts: BadgePart[] = [];
  const add = (kind: BadgePart['kind'], text: string, when: boolean): void => {
    if (when) {
      parts.push({ kind, text });
    }
  };
  add('error', 'error', cell.error !== null);
  const time = verdict.seconds === null ? '' : spread(verdict.seconds, verdict.repeated?.deviation ?? null);
  add(
    'time',
    verdict.repeated ? time : (verdict.waited?.text ?? time),
    verdict.waited !== null || verdict.seconds !== null
  );
  add(
    'numpy',
    verdict.speed?.text ?? `NumPy ${duration(verdict.numpySeconds ?? 0)}`,
    verdict.numpySeconds !== null || verdict.speed !== null
  );
  add('settled', verdict.settled?.short ?? '', verdict.settled !== null);
  add('compiled', `${verdict.compiled}/${verdict.operations} compiled`, verdict.operations > 0);
  add('kernels', some(verdict.kernels, 'kernel'), verdict.kernels > 0);
  add('host', `${verdict.host} by NumPy`, verdict.host > 0);
  add('retraces', some(verdict.retraces, 'retrace'), verdict.retraces > 0);
  add('python', `${some(verdict.statements, 'statement')} by Python`, verdict.statements > 0);
  return parts;
}

/** What a badge says, for a comparison with what it said, and for a reader. */
export function badgeText(report: Report): string {
  return badgeParts(report)
    .map(({ text }) => text)
    .join(' · ');
}

/** Draws the parts into a button. */
export function fillBadge(button: HTMLElement, report: Report, note: string): void {
  const color = report.clusters[0]?.color ?? 0;
  const parts = badgeParts(report).map(({ kind, text }) =>
    h(
      'span',
      { class: `jl-badge-${kind}` },
      kind === 'compiled' && swatch(report.verdict.compiled ? color : 'op'),
      kind === 'host' && icon('host'),
      kind === 'retraces' && icon('retrace'),
      kind === 'error' && icon('no'),
      text
    )
  );
  button.replaceChildren(...parts, ...(note ? [h('span.jl-badge-note', note)] : []));
  const spoken = joined('. ', badgeText(report).replaceAll(' · ', ', '), note);
  button.setAttribute('aria-label', `${report.cell.title}: ${spoken}. Show in the jitlab panel.`);
  button.title = 'Show in the jitlab panel';
}
