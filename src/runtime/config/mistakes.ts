/**
 * Turns a schema error into a sentence for the author of the configuration: which member, what is wrong with it, what
 * to write instead. Pure.
 */
import type { Mistake } from '../../model/validate.ts';
import { nearest } from '../../policy/rules/problems.ts';

export interface ConfigMistake {
  /** The member it is about, relative to the checked value. */
  readonly path: readonly string[];
  /** It is about the member's name and not about its value. */
  readonly atKey: boolean;
  readonly sentence: string;
}

interface Schema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly examples?: readonly unknown[];
}
interface Params {
  readonly additionalProperty?: string;
  readonly missingProperty?: string;
  readonly allowedValues?: readonly unknown[];
  readonly type?: string | readonly string[];
  readonly limit?: number;
}

/** `at` is the path of the checked value itself: `['agents', 'coder', 'acp']`. `value` is that value. */
export function inWords(mistake: Mistake, value: unknown, at: readonly string[]): ConfigMistake {
  const inside = mistake.instancePath.split('/').slice(1).map(unescaped);
  const params = mistake.params as Params;
  const known = Object.keys((mistake.parentSchema as Schema | undefined)?.properties ?? {});
  const mistakeAt = (path: readonly string[], sentence: string, atKey = false): ConfigMistake => ({
    path,
    atKey,
    sentence: `${spoken(at, path, value)} ${sentence}`.trim(),
  });
  const unknownMember = (name: string) =>
    mistakeAt([...inside, name], `is not known here; ${instead(name, known, 'there are')}`, true);

  if (mistake.propertyName !== undefined) {
    const better = mistake.propertyName.toLowerCase().replace(/[^a-z0-9_-]+/g, '-');
    const write = /^[a-z]/.test(better) ? `; write ${better}` : '';
    return mistakeAt(
      [...inside, mistake.propertyName],
      `cannot be a name: small letters, digits, _ and - only${write}`,
      true,
    );
  }
  switch (mistake.keyword) {
    case 'additionalProperties':
      return unknownMember(params.additionalProperty ?? '');
    case 'required': {
      // A missing member is most often there under a misspelled name.
      const missing = params.missingProperty ?? '';
      const odd = Object.keys((mistake.data ?? {}) as object).find((name) => !known.includes(name));
      if (odd !== undefined && known.length > 0) return unknownMember(odd);
      return mistakeAt([...inside, missing], 'is missing');
    }
    case 'enum': {
      const words = (params.allowedValues ?? []).map(String);
      return mistakeAt(
        inside,
        `is ${shown(mistake.data)}, and has to be ${instead(String(mistake.data), words, 'one of')}`,
      );
    }
    case 'type':
      return mistakeAt(inside, wrongType(params.type, mistake));
    case 'minimum':
      return mistakeAt(inside, `is ${shown(mistake.data)}, and has to be ${params.limit} or more`);
    case 'maximum':
      return mistakeAt(inside, `is ${shown(mistake.data)}, and has to be ${params.limit} or less`);
    case 'minLength':
    case 'minItems':
    case 'minProperties':
      return mistakeAt(inside, 'is empty; write what belongs there, or take it out');
    default: {
      const like = examples(mistake);
      return mistakeAt(
        inside,
        like ? `is ${shown(mistake.data)}, and has to be like ${like}` : (mistake.message ?? 'cannot be understood'),
      );
    }
  }
}

function wrongType(wanted: Params['type'], mistake: Mistake): string {
  const { data } = mistake;
  if (data === null || data === undefined) return 'is empty; write what belongs there, or take it out';
  const like = examples(mistake);
  if (like) return `is ${shown(data)}, and has to be like ${like}`;
  const [type] = [wanted].flat();
  switch (type) {
    case 'array':
      return typeof data === 'string'
        ? `has to be a list: write [${data.split(' ').join(', ')}]`
        : 'has to be a list: [one, another]';
    case 'object': {
      const known = Object.keys((mistake.parentSchema as Schema | undefined)?.properties ?? {});
      return `has to be written as { ${known[0] ?? 'name'}: ... }${known.length > 0 ? `; there are: ${known.join(', ')}` : ''}`;
    }
    case 'integer':
      return `is ${shown(data)}, and has to be a whole number`;
    case 'number':
      return `is ${shown(data)}, and has to be a number`;
    case 'boolean':
      return `is ${shown(data)}, and has to be true or false`;
    default:
      return `is ${shown(data)}, and has to be a text${typeof data === 'object' ? '' : `: write "${String(data)}"`}`;
  }
}

function examples({ parentSchema }: Mistake): string | undefined {
  const samples = (parentSchema as Schema | undefined)?.examples ?? [];
  return samples.length > 0
    ? samples
        .map(String)
        .join(', ')
        .replace(/, ([^,]*)$/, ' or $1')
    : undefined;
}

function instead(word: string, known: readonly string[], list: string): string {
  const near = nearest(word, known);
  if (near) return `did you mean ${near}?`;
  return known.length > 0 ? `${list}: ${known.join(', ')}` : 'nothing can stand here';
}

/** `listen.port`; items of lists by their `id`: `rules.reads-are-fine.then`. */
function spoken(at: readonly string[], path: readonly string[], value: unknown): string {
  let now = value;
  const words = path.map((step) => {
    now = (now as Readonly<Record<string, unknown>> | undefined)?.[step];
    const { id } = (now ?? {}) as { id?: unknown };
    return /^\d+$/.test(step) && typeof id === 'string' ? id : step;
  });
  return [...at, ...words].join('.') || 'the file';
}

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null
    ? Array.isArray(value)
      ? 'a list'
      : 'members'
    : JSON.stringify(value);
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}
