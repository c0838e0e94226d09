/** What the tasks say to the demo agent: every kind of work it knows, alone and in a row. */
import type { Chance } from '../random.ts';

const WORK = {
  hello: 3,
  read: 2,
  write: 5,
  rewritten: 2,
  send: 5,
  delete: 2,
  artifact: 2,
  ask: 2,
  long: 3,
  fail: 1,
  several: 5,
};
type Work = keyof typeof WORK;

/** The nonce is in the arguments of every effect, so that a line of the journal can be distinguished from any other. */
export function wordsFor(nonce: string, chance: Chance): string {
  const kind = chance.weighted(WORK);
  if (kind !== 'several') return clause(kind, nonce, chance);
  const { several: _, fail: __, ...steps } = WORK;
  const clauses = Array.from({ length: chance.between(2, 5) }, (_, at) =>
    clause(chance.weighted(steps), `${nonce}-${at}`, chance),
  );
  return clauses.join(' then ');
}

function clause(kind: Exclude<Work, 'several'>, nonce: string, chance: Chance): string {
  switch (kind) {
    case 'hello':
      return 'hello';
    case 'read':
      return 'read plan';
    case 'write':
      return `write note-${nonce} some words`;
    case 'rewritten':
      return `write draft-${nonce} rough words`;
    case 'send':
      return `send ${nonce} to ana`;
    case 'delete':
      return `write gone-${nonce} soon then delete gone-${nonce}`;
    case 'artifact':
      return 'artifact';
    case 'ask':
      return 'ask which colour';
    case 'long':
      return `wait ${chance.between(1, 6)}`;
    case 'fail':
      return 'fail on_purpose';
  }
}

/** Rules under which all of it happens: effects that are allowed, rewritten, asked about; work that is asked about. */
export const CONFIG = `
approvals: { expire_after: 40s }
rules:
  - { id: reads-are-fine, when: { effect: read }, then: allow }
  - { id: drafts-are-tidied, when: { tool: write_note, arguments: { name: "draft-*" } }, then: modify, set: { text: tidy words } }
  - { id: notes-are-fine, when: { effect: write }, unless: { arguments: { name: "draft-*" } }, then: allow }
  - { id: a-person-decides, when: { effect: [send, delete] }, then: ask }
  - { id: guarded-work, when: { kind: prompt, persona: guarded }, then: ask, expires: 40s }
`;
