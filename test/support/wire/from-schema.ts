/** Values that have the shape a schema asks for, so that what is looked at next is looked at too. */
import fc from 'fast-check';

interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly anyOf?: readonly Shape[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly patternProperties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly examples?: readonly unknown[];
}

/** `named` is asked first: it knows what to put in members that name something. */
export function fromSchema(
  schema: object,
  named: (member: string) => fc.Arbitrary<unknown> | undefined,
  anything: fc.Arbitrary<unknown>,
): fc.Arbitrary<unknown> {
  const build = (shape: Shape, member = ''): fc.Arbitrary<unknown> => {
    if (shape.const !== undefined) return fc.constant(shape.const);
    if (shape.enum) return fc.constantFrom(...shape.enum);
    if (shape.examples?.length) return fc.constantFrom(...shape.examples);
    if (shape.anyOf) return fc.oneof(...shape.anyOf.map((one) => build(one, member)));
    const type = Array.isArray(shape.type) ? shape.type[0] : shape.type;
    switch (type) {
      case 'object':
        return object(shape);
      case 'array':
        return fc.array(shape.items ? build(shape.items, member.replace(/s$/, '')) : anything, { maxLength: 3 });
      case 'string':
        return text(shape, member);
      case 'integer':
      case 'number':
        return fc.nat({ max: 1000 }).map((n) => n + (shape.minimum ?? 0));
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      default:
        return anything;
    }
  };

  const text = ({ pattern, format, minLength }: Shape, member: string): fc.Arbitrary<unknown> => {
    if (format === 'date-time') return fc.constant('2026-01-01T00:00:00.000Z');
    if (pattern?.includes('{64}')) return fc.constant(`sha256:${'0'.repeat(64)}`);
    const known = pattern ? named(member) : undefined;
    return known ?? (pattern ? fc.constant('some_id') : fc.string({ minLength: minLength ?? 0, unit: 'binary' }));
  };

  const object = ({ properties, patternProperties, required = [] }: Shape): fc.Arbitrary<unknown> => {
    const [values] = Object.values(patternProperties ?? {});
    if (values) return fc.dictionary(fc.string(), build(values), { maxKeys: 2 });
    if (!properties) return fc.dictionary(fc.string({ unit: 'binary' }), anything, { maxKeys: 4 });
    const members: Record<string, fc.Arbitrary<unknown>> = {};
    for (const [name, shape] of Object.entries(properties)) members[name] = named(name) ?? build(shape, name);
    return fc.record(members, { requiredKeys: [...required] });
  };
  return build(schema as Shape);
}
