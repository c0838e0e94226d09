/** Our own log, one JSON line each on stderr. Secrets are taken out of it as they are out of events. */
import pino from 'pino';
import type { Redactor } from '../core/redact.ts';
import type { Logger } from '../ports.ts';

export function createLogger(redactor: Redactor, level = process.env.TOLLBRIDGE_LOG ?? 'warn'): Logger {
  const out = pino(
    { level, base: null, serializers: { err: (thrown: unknown) => redactor.errorText(thrown) } },
    pino.destination(2),
  );
  const clean = (fields: object) => redactor.redact(fields).value;
  // `err` is an Error and is spelled by its serializer; everything else is data and is cleaned as data.
  const say = (how: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    const { err, ...rest } = fields as { err?: unknown };
    out[how]({ ...(err !== undefined && { err }), ...clean(rest) }, redactor.text(message));
  };
  return { info: say('info'), warn: say('warn'), error: say('error') };
}
