/**
 * A link that lets its holder answer one question. It names the question and proves that the gateway made it; nothing
 * is looked up and nothing can be guessed. It works once, because a question is answered once, and not after the
 * question expires.
 */
import { timingSafeEqual } from 'node:crypto';

export interface Links {
  /** The last part of the link: `<recipient>.<question>.<proof>`. Always the same for the same question. */
  token(recipient: string, askId: string): string;
  /** Undefined unless the proof is valid. */
  read(token: string): { readonly recipient: string; readonly askId: string } | undefined;
}

export function createLinks(mac: (text: string) => string): Links {
  const proof = (recipient: string, askId: string) =>
    mac(`decision-link ${recipient} ${askId}`).replace(/^hmac-sha256:/, '');
  return {
    token: (recipient, askId) => `${recipient}.${askId}.${proof(recipient, askId)}`,
    read(token) {
      const [recipient = '', askId = '', signature = '', ...more] = token.split('.');
      if (more.length > 0) return undefined;
      const wanted = Buffer.from(proof(recipient, askId));
      const shown = Buffer.from(signature);
      return shown.length === wanted.length && timingSafeEqual(shown, wanted) ? { recipient, askId } : undefined;
    },
  };
}
