/** What a stretch of a line is: the theme has a colour for each. */
export type TokenKind = '' | 'keyword' | 'comment' | 'string' | 'number';
export type Token = [TokenKind, string];

type Language = 'python' | 'program' | 'llvm' | 'asm';

const NUMBER = /\b(?:0x[\da-fA-F]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?)\b/;
const STRING = /(?:\b[rbfuRBFU]{1,2})?(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)/;

const RULES: Record<Language, [TokenKind, RegExp][]> = {
  python: [
    ['comment', /#.*/],
    ['string', STRING],
    [
      'keyword',
      /^\s*%%?\w+|@\w[\w.]*|\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\b/
    ],
    ['number', NUMBER]
  ],
  program: [
    ['comment', /#.*/],
    [
      'keyword',
      /\b(?:kernel|parallel|serial|for|while|in|if|else|step|store|load|return|let|call|reduce|loop|nest|param|local|check)\b/
    ],
    ['number', NUMBER]
  ],
  llvm: [
    ['comment', /;.*/],
    ['string', /"[^"]*"/],
    [
      'keyword',
      /\b(?:define|declare|ret|br|switch|call|tail|load|store|getelementptr|phi|select|icmp|fcmp|fadd|fsub|fmul|fdiv|fneg|frem|add|sub|mul|sdiv|udiv|and|or|xor|shl|ashr|lshr|bitcast|sext|zext|trunc|sitofp|uitofp|fptosi|fptoui|fpext|fptrunc|alloca|inbounds|insertelement|extractelement|shufflevector)\b/
    ],
    ['number', /(?<![\w%@.$])-?\d[\d.]*(?:e[+-]?\d+)?\b/]
  ],
  asm: [
    ['comment', /(?:#|;|\/\/).*/],
    ['number', /(?<![\w%.])\$?-?(?:0x[\da-f]+|\d+)\b/]
  ]
};

const LANGUAGES: Record<string, Language> = {
  graph: 'program',
  program: 'program',
  llvm: 'llvm',
  'llvm-optimized': 'llvm',
  asm: 'asm',
  ptx: 'asm',
  sass: 'asm',
  numba: 'python'
};

export function languageOf(stage: string): Language {
  return LANGUAGES[stage] ?? 'program';
}

/** Pure: a line in, its stretches out; together they are the line. Beyond `most` letters nothing is told apart. */
export function tokens(line: string, language: Language, most = 400): Token[] {
  const found: Token[] = [];
  let rest = line.slice(0, most);
  const tail = line.slice(most);
  const rules = RULES[language].map(([kind, rule]) => [kind, new RegExp(rule.source, 'g')] as const);
  let at = 0;
  while (at < rest.length) {
    let next: { start: number; end: number; kind: TokenKind } | null = null;
    for (const [kind, rule] of rules) {
      rule.lastIndex = at;
      const match = rule.exec(rest);
      if (match?.[0] && (next === null || match.index < next.start)) {
        next = { start: match.index, end: match.index + match[0].length, kind };
      }
    }
    if (!next) {
      break;
    }
    if (next.start > at) {
      found.push(['', rest.slice(at, next.start)]);
    }
    found.push([next.kind, rest.slice(next.start, next.end)]);
    at = next.end;
  }
  rest = rest.slice(at) + tail;
  return rest ? [...found, ['', rest]] : found;
}
