/** Codes of a report in words: of the table that the kernel reads, what the panel puts together itself. */
import { cause, unfixed } from '../../../../jitlab/messages/table.json';

/** What was said: decisions hang on the code, never on the text. */
export interface Message {
  code: string;
  text: string;
}

/** A change of the program; of code `form` says where it goes, of a sentence it is `words`. */
export interface Fix extends Message {
  form: string;
}

/** What changed, as words. */
export function causeText(code: string): string {
  return (cause as Record<string, string>)[code] ?? code.replaceAll('_', ' ');
}

/** That no fix was found, and whether code was compiled again. */
export function noFix(compiled: boolean): Message {
  const code = compiled ? 'compiled' : 'recorded';
  return { code, text: unfixed[code] };
}
