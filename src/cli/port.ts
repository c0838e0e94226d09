/** A port as it was typed. */
import { trouble } from './output/error-output.ts';

export function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw trouble(
      'invalid_request',
      `${text} is not a port`,
      'use a number from 1 to 65535, or 0 for any that is free',
    );
  }
  return port;
}
