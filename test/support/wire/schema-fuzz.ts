/** Values that fit a JSON Schema, and values that only nearly do. The same seed gives the same values. */
// biome-ignore lint/suspicious/noExplicitAny: schemas are looked into freely
type Schema = any;

export interface Dice {
  /** From 0 up to but not including `below`. */
  roll(below: number): number;
  pick<T>(from: readonly T[]): T;
  chance(of: number): boolean;
}

export function dice(seed: number): Dice {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const roll = (below: number) => Math.floor(next() * below);
  return { roll, pick: (from) => from[roll(from.length)]!, chance: (of) => next() < of };
}

const STRINGS = [
  '',
  'x',
  'hello world',
  '../../etc/passwd',
  "'; DROP TABLE rows; --",
  '\u0000\u0001',
  '\u202e\u200b',
  'ünïcödé \u{1f600}',
  'a'.repeat(300),
  'sha256:'.padEnd(71, '0'),
  '2026-01-01T00:00:00Z',
  '<script>alert(1)</script>',
  '{{7*7}} %s %n',
  'constructor',
  '__proto__',
  'evt_0000000000000001',
];
const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  2 ** 53,
  -0,
  '',
  [],
  {},
  [[]],
  { __proto__x: 1, constructor: { prototype: 1 } },
  'x'.repeat(5000),
];

/** Ids a generated value may use where it needs one. */
export function fuzzer(d: Dice, ids: readonly string[], resolve: (ref: string) => Schema) {
  /** Mostly one of the kind the member is named for. */
  function id(name: string): string {
    const kind =
      name
        .replace(/_ids?$/, '')
        .split('_')
        .at(-1) ?? '';
    const fitting = ids.filter((one) => one.startsWith(kind));
    return fitting.length > 0 && d.chance(0.8) ? d.pick(fitting) : d.pick(ids);
  }

  function text({ pattern, format, minLength }: Schema, name: string): string {
    if (format === 'date-time')
      return d.pick(['2026-01-01T00:00:00Z', '2026-06-30T23:59:60.5+02:00', '1970-01-01T00:00:00Z']);
    if (pattern?.includes('A-Za-z0-9_.-')) return id(name);
    if (pattern?.includes('64')) return `${pattern.includes('(sha256:)?') ? '' : 'sha256:'}${'a'.repeat(64)}`;
    const made = d.pick(STRINGS);
    return made.length < (minLength ?? 0) ? 'filled' : made;
  }

  function value(schema: Schema, depth = 0, name = ''): unknown {
    if (schema.$ref) return value(resolve(schema.$ref), depth, name);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum) return d.pick(schema.enum);
    if (schema.anyOf) return value(d.pick(schema.anyOf), depth, name);
    const type = Array.isArray(schema.type) ? d.pick(schema.type) : schema.type;
    switch (type) {
      case 'null':
        return null;
      case 'boolean':
        return d.chance(0.5);
      case 'integer':
      case 'number':
        return Math.max(schema.minimum ?? -5, Math.min(schema.maximum ?? 1000, d.roll(10)));
      case 'string':
        return text(schema, name);
      case 'array':
        return Array.from({ length: depth > 3 ? 0 : d.roll(3) }, () => value(schema.items ?? {}, depth + 1, name));
      case 'object':
        return object(schema, depth);
      default:
        return d.pick(ODD);
    }
  }

  function object(schema: Schema, depth: number): Record<string, unknown> {
    const made: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(schema.properties ?? {})) {
      const needed = schema.required?.includes(name);
      if (needed || (depth < 3 && d.chance(0.4))) made[name] = value(member, depth + 1, name);
    }
    const open = schema.patternProperties && Object.values(schema.patternProperties)[0];
    if (open && d.chance(0.5)) made[d.pick(STRINGS)] = value(open, depth + 1);
    if (!schema.properties && !open && d.chance(0.7)) {
      Object.assign(
        made,
        d.chance(0.6)
          ? { role: 'user', parts: [{ type: 'text', text: d.pick(STRINGS), visibility: 'public' }] }
          : { [d.pick(STRINGS) || 'a']: d.pick(ODD) },
      );
    }
    if (d.chance(0.1)) made.unknown_member = d.pick(ODD);
    return made;
  }

  /** One thing about it is not as it should be. */
  function spoil(made: unknown): unknown {
    if (typeof made !== 'object' || made === null || Array.isArray(made) || d.chance(0.1)) return d.pick(ODD);
    const names = Object.keys(made);
    const name = names.length > 0 ? d.pick(names) : 'a';
    const { [name]: member, ...rest } = made as Record<string, unknown>;
    if (d.chance(0.3)) return rest;
    if (d.chance(0.3)) return { ...rest, [name]: spoil(member) };
    return { ...rest, [name]: d.pick(ODD) };
  }

  return { value, spoil, id, string: () => d.pick(STRINGS) };
}
