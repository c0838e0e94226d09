/**
 * A link that lets whoever holds it answer one question. It names the question and proves that we made it; there is nothing
 * to look up and nothing to guess. Used once, because a question is answered once, and worth nothing after its time.
 */
import { timingSafeEqual } from 'node:crypto';

export interface Links {
  /** The last part of the link: `<recipient>.<question>.<proof>`. The same question always has the same one. */
  token(recipient: string, askId: string): string;
  /** Undefined unless we made it. */
  read(token: string): { readonly recipient: string; readonly askId: string } | undefined;
}

export function createLinks(mac: (text: string) => string): Links {
  const proof = (recipient: string, askId: string) =>
    mac(`decision-link ${recipient} ${askId}`).replace(/^hmac-sha256:/, '');
  return {
    token: (recipient, askId) => `${recipient}.${askId}.${proof(recipient, askId)}`,
    read(token) {
      const [recipient = '', askId = '', given = '', ...more] = token.split('.');
      if (more.length > 0) return undefined;
      const wanted = Buffer.from(proof(recipient, askId));
      const shown = Buffer.from(given);
      return shown.length === wanted.length && timingSafeEqual(shown, wanted) ? { recipient, askId } : undefined;
    },
  };
}
