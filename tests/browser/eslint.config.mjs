import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['**/node_modules/', 'extension/lib/', 'tests/browser/test-results/'] },
  {
    files: ['extension/**/*.ts', 'tests/browser/**/*.ts'],
    extends: [js.configs.recommended, tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { project: ['tsconfig.json', 'tests/browser/tsconfig.json'], tsconfigRootDir: process.cwd() }
    },
    rules: {
      // what a handler gives back nobody reads
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // node:test and Lumino signals return promises and bound methods that nobody waits for
      '@typescript-eslint/no-floating-promises': ['error', { allowForKnownSafeCalls: ['test', 'describe', 'it'] }],
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'A report may hold user text: set textContent.' },
        { property: 'outerHTML', message: 'A report may hold user text: set textContent.' }
      ]
    }
  }
);
