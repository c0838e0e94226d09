/**
 * The process's own log on stderr: JSON lines for log collectors, sentences on a terminal. Secrets are redacted as they
 * are in events.
 */

import pino from 'pino';
import type { Redactor } from '../core/redaction/redact.ts';
import { asText } from '../model/values/as-text.ts';
import { brief, visibleText } from '../model/values/visible-text.ts';
import type { Logger } from '../ports/index.ts';

type How = 'info' | 'warn' | 'error';
/** Writes one redacted entry. */
type Out = Readonly<Record<How, (fields: object, message: string) => void>>;

export function createLogger(redactor: Redactor, level = process.env.TOLLBRIDGE_LOG ?? 'warn'): Logger {
  const errorText = (thrown: unknown) => redactor.errorText(thrown);
  const out: Out = process.stderr.isTTY
    ? forPeople(level, errorText, (line) => process.stderr.write(line))
    : pino({ level, base: null, serializers: { err: errorText } }, pino.destination(2));
  const clean = (fields: object) => redactor.redact(fields).value;
  // `err` is an Error and is redacted by its serializer; everything else is data and is redacted as data.
  const say = (how: How) => (fields: object, message: string) => {
    const { err, ...rest } = fields as { err?: unknown };
    out[how]({ ...(err !== undefined && { err }), ...clean(rest) }, redactor.text(message));
  };
  return { info: say('info'), warn: say('warn'), error: say('error') };
}

const LEVELS: Readonly<Record<string, readonly How[]>> = {
  silent: [],
  fatal: [],
  error: ['error'],
  warn: ['warn', 'error'],
};

/** `tollbridge: the new configuration was refused; the old one stays in force (error: tollbridge.yaml:3:1: …)`. */
export function forPeople(level: string, errorText: (thrown: unknown) => string, write: (line: string) => void): Out {
  const shown = LEVELS[level] ?? ['info', 'warn', 'error'];
  const say = (how: How) => (fields: object, message: string) => {
    if (!shown.includes(how)) return;
    const more = Object.entries(fields).map(([name, value]) => {
      const text = name === 'err' ? errorText(value) : typeof value === 'string' ? value : JSON.stringify(value);
      return `${name}: ${brief(asText(text), 300)}`;
    });
    write(`tollbridge: ${visibleText(message)}${more.length > 0 ? ` (${more.join(', ')})` : ''}\n`);
  };
  return { info: say('info'), warn: say('warn'), error: say('error') };
}
