/** What a report of an earlier version says in text alone, as it is said now. Its texts are closed: they are told apart here alone. */
import type { Fix, Message } from '../base/messages';
import type { Json } from '../base/read';
import type { Reason } from './report';

/** Code begins with a decorator, a call or an assignment; a sentence with its first word. */
export function olderFix(fix: string): Fix | null {
  return fix ? { code: '', text: fix, form: /^(@|[^ `]+( = |[=(]))/.test(fix) ? 'line' : 'words' } : null;
}

/** The tier of machine code stood in the label alone. */
export function olderTier(label: string): string {
  return label.endsWith(', quick') ? 'quick' : '';
}

/** Without a fix the proof may say that it is done. */
export function olderDone(proof: string): Message | null {
  return proof.endsWith('Nothing to fix.') ? { code: '', text: proof } : null;
}

/** Until version 3 what would change a decision was a text. */
export function olderFlip(edge: Json): Json {
  return { ...edge, flip: edge.would_fuse_if ? { text: edge.would_fuse_if } : null };
}

/** Until version 2 the first clause of a reason, and whether it says a size, stood in its text alone. */
export function olderReason({ reason }: { reason: Reason }): void {
  const [, clause = '', rest = ''] = /^(.*?)[.:;] ([a-z`([].*)/is.exec(reason.text) ?? [];
  const hasSize = (said: string) => /\d [kMG]?B\b/.test(said);
  const sizeIn = hasSize(clause || reason.text) ? 'clause' : hasSize(rest) ? 'rest' : '';
  Object.assign(reason, { clause, rest, sizeIn });
}
