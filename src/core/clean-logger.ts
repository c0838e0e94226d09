/** A logger that writes no secrets, whatever it is handed: errors become one clean line, everything else is cleaned as data. */
import type { Logger } from '../ports.ts';
import type { Redactor } from './redact.ts';

export function cleanLogger(logger: Logger, redactor: Pick<Redactor, 'redact' | 'text' | 'errorText'>): Logger {
  const say = (how: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    const { err, ...rest } = fields as { err?: unknown };
    const clean = redactor.redact(rest).value;
    logger[how](err === undefined ? clean : { ...clean, err: redactor.errorText(err) }, redactor.text(message));
  };
  return { info: say('info'), warn: say('warn'), error: say('error') };
}
