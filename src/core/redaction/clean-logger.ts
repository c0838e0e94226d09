/** A logger that writes no secrets, whatever it is given: errors become one redacted line, everything else is redacted as data. */
import type { Logger } from '../../ports/index.ts';
import type { Redactor } from './redact.ts';

export function cleanLogger(logger: Logger, redactor: Pick<Redactor, 'redact' | 'text' | 'errorText'>): Logger {
  const say = (how: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    const { err, ...rest } = fields as { err?: unknown };
    const clean = redactor.redact(rest).value;
    logger[how](err === undefined ? clean : { ...clean, err: redactor.errorText(err) }, redactor.text(message));
  };
  return { info: say('info'), warn: say('warn'), error: say('error') };
}
