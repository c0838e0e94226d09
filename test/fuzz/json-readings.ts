/**
 * Every frame that some reader could find in a line: one that ends lines at other characters too, one that takes the first of
 * two names, one that takes the last, one that forgives a mark at the beginning, one that reads value after value. A line that
 * is carried has exactly one reading.
 */
export function readings(line: string): unknown[] {
  const found = new Map<string, unknown>();
  const add = (value: unknown) => {
    for (const each of Array.isArray(value) ? value.flat(3) : [value]) {
      if (typeof each === 'object' && each !== null) found.set(JSON.stringify(each), each);
    }
  };
  for (const text of [line, ...line.split(/[\r\u0085\u2028\u2029]/)]) {
    for (const keep of ['first', 'last'] as const) {
      for (const value of valuesIn(text.replace(/^[\ufeff\0\s]+/, ''), keep)) add(value);
    }
  }
  return [...found.values()];
}

/** The values at the beginning of a text, one after the other, as far as they can be read. */
function valuesIn(text: string, keep: 'first' | 'last'): unknown[] {
  const values: unknown[] = [];
  let at = 0;
  const space = () => {
    while (/\s/.test(text[at] ?? 'x')) at += 1;
  };
  const fail = (): never => {
    throw new SyntaxError(`at ${at}`);
  };
  function string(): string {
    const match = /^"(?:[^"\\]|\\.)*"/s.exec(text.slice(at));
    if (!match) return fail();
    at += match[0].length;
    return JSON.parse(match[0]) as string;
  }
  function value(): unknown {
    space();
    const char = text[at];
    if (char === '"') return string();
    if (char === '{' || char === '[') return char === '{' ? object() : list();
    const word = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/.exec(text.slice(at, at + 400));
    if (!word) return fail();
    at += word[0].length;
    return JSON.parse(word[0]);
  }
  function object(): unknown {
    const members = new Map<string, unknown>();
    at += 1;
    space();
    while (text[at] !== '}') {
      space();
      const name = string();
      space();
      if (text[at] !== ':') return fail();
      at += 1;
      const member = value();
      if (keep === 'last' || !members.has(name)) members.set(name, member);
      space();
      if (text[at] === ',') at += 1;
      else if (text[at] !== '}') return fail();
    }
    at += 1;
    return Object.fromEntries(members);
  }
  function list(): unknown {
    const items: unknown[] = [];
    at += 1;
    space();
    while (text[at] !== ']') {
      items.push(value());
      space();
      if (text[at] === ',') at += 1;
      else if (text[at] !== ']') return fail();
      space();
    }
    at += 1;
    return items;
  }
  try {
    while (at < text.length) {
      values.push(value());
      space();
    }
  } catch {}
  return values;
}
