/** What the kernel answers beside reports, as the views have it. */
import { maybe, record } from '../base/read';
import * as parts from './records';

export type Answer = ReturnType<typeof parts.readWhatIfAnswer>;
export type Change = ReturnType<typeof parts.readTimeChange>;
export type Code = ReturnType<typeof parts.readClusterListing>;
export type CodeLine = ReturnType<typeof parts.readCodeLine>;
export type Absorbed = ReturnType<typeof parts.readAbsorbedOp>;
export type Comparison = ReturnType<typeof parts.readRunsCompared>;
export type ComparisonRow = ReturnType<typeof parts.readComparedPart>;
export type PathStep = ReturnType<typeof parts.readPathStep>;
export type Side = ReturnType<typeof parts.readMeasuredPlan>;
export type Sweep = ReturnType<typeof parts.readSweepAnswer>;

/** Each null where there is none to read. */
export const readAnswer = (result: unknown): Answer | null => maybe(result, parts.readWhatIfAnswer);
export const readSweep = (result: unknown): Sweep | null => maybe(result, parts.readSweepAnswer);
export const readCode = (reply: unknown): Code | null => maybe(record(reply).code, parts.readClusterListing);
export const readComparison = (reply: unknown): Comparison | null =>
  maybe(record(reply).comparison, parts.readRunsCompared);
