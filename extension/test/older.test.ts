import assert from 'node:assert/strict';
import { test } from 'node:test';
import { olderDone, olderFix, olderReason } from '../src/core/report/older';
import type { Reason } from '../src/core/report/report';
import older from './fixtures/older.json';

test('what an earlier version said in text alone is read as Python reads it', () => {
  for (const [text, clause, rest, sizeIn] of older.reasons) {
    const reason = { code: '', text } as Reason;
    olderReason({ reason });
    assert.deepEqual({ ...reason }, { code: '', text, clause, rest, sizeIn });
  }
  for (const [proof, isDone] of older.done) {
    assert.equal(olderDone(proof as string) !== null, isDone);
  }
  for (const [fix, kind] of older.fixes) {
    assert.equal(olderFix(fix as string)?.form === 'words' ? 'words' : 'code', kind, fix);
  }
});
