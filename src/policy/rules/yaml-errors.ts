/** Rewords a YAML parser's errors for readers who do not know its grammar: what is wrong, and what to write instead. */
import type { YAMLError } from 'yaml';

export function yamlWords({ code, message }: Pick<YAMLError, 'code' | 'message'>): string {
  const [, closing] = /end with a ([\]}])$/.exec(message) ?? [];
  if (closing) return `a ${closing === '}' ? '{' : '['} that was opened before is not closed; write ${closing}`;
  return WORDS[code] ?? `this is not YAML: ${message}`;
}

const WORDS: Partial<Record<YAMLError['code'], string>> = {
  DUPLICATE_KEY: 'this name stands here for the second time; leave one of them out',
  TAB_AS_INDENT: 'lines cannot be indented with tabs; write spaces',
  BAD_INDENT: 'this line does not stand under the one it belongs to; indent it by as many spaces as its neighbours',
  MULTILINE_IMPLICIT_KEY: 'a name has to end with a colon on its own line; write name: value',
};
