/**
 * Both wires of one connection and what is still unanswered on them. Ids belong to a direction: both sides count from
 * nought, so there is a ledger for each. Requests of our own go by names that neither side counts up to.
 */
import type { JsonObject } from '../../../src/index.ts';
import type { OrderedWriter } from '../../../src/wire/ordered-writer.ts';
import { encode, encodeError, frameOf, idOf, type Request, type Response, sameId, type Unreadable } from './frame.ts';

export interface Unanswered {
  readonly method: string;
  /** The id as it was written. */
  readonly id: string;
  /** Takes the answer; without it the answer goes on as it is. */
  readonly answered?: (response: Response) => void;
}

export interface Ledger {
  expect(entry: Unanswered): void;
  /** The one this answers, which is then no longer open. */
  take(response: Response): Unanswered | undefined;
  get(id: string): Unanswered | undefined;
  forget(id: string): void;
  /** It has been answered for, or is wanted no more: whatever still comes is for nobody. False when it was not open. */
  giveUp(id: string): boolean;
  all(): readonly Unanswered[];
}

export interface Wires {
  readonly editor: OrderedWriter;
  readonly agent: OrderedWriter;
  /** What the editor asked of the agent. */
  readonly calls: Ledger;
  /** What the agent asked of the editor, and we of the editor. */
  readonly asks: Ledger;
  /** Asks the other side with the agent's own bytes and comes back with what it says. Rejects when it has gone. */
  askEditor(request: Request, line?: Buffer): Promise<Response>;
  askAgent(request: Request, line?: Buffer): Promise<Response>;
  /** A request of ours to the editor. */
  put(method: string, params: JsonObject, answered: (response: Response) => void): string;
  /** A question the editor need not answer any more; what it says to it from now on is for nobody. */
  withdraw(id: string): void;
  /** Everyone who waits for the editor, or for the agent, hears that it has gone. */
  gone(side: 'editor' | 'agent', why: Error): void;
}

export function createWires(editor: OrderedWriter, agent: OrderedWriter): Wires {
  const [calls, asks] = [createLedger(), createLedger()];
  const waiting = { editor: new Set<(why: Error) => void>(), agent: new Set<(why: Error) => void>() };
  const lost: { editor?: Error; agent?: Error } = {};
  let count = 0;

  function ask(side: 'editor' | 'agent', request: Request, line = request.line): Promise<Response> {
    const [writer, ledger] = side === 'editor' ? [editor, asks] : [agent, calls];
    return new Promise((resolve, reject) => {
      const why = lost[side];
      if (why) return reject(why);
      waiting[side].add(reject);
      const answered = (response: Response) => {
        waiting[side].delete(reject);
        resolve(response);
      };
      ledger.expect({ method: request.method, id: idOf(request), answered });
      writer.send(line);
    });
  }

  return {
    editor,
    agent,
    calls,
    asks,
    askEditor: (request, line) => ask('editor', request, line),
    askAgent: (request, line) => ask('agent', request, line),
    put(method, params, answered) {
      count += 1;
      const id = JSON.stringify(`${OWN_IDS}${count}`);
      asks.expect({ method, id, answered });
      editor.send(encode({ jsonrpc: '2.0', id: `${OWN_IDS}${count}`, method, params }));
      return id;
    },
    withdraw(id) {
      if (!asks.giveUp(id)) return;
      editor.send(Buffer.from(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":${id}}}\n`));
    },
    gone(side, why) {
      lost[side] ??= why;
      for (const reject of [...waiting[side]]) reject(why);
      waiting[side].clear();
    },
  };
}

const OWN_IDS = 'gw:';

/** An id that only we give. */
export function isOwnId(id: string): boolean {
  return id.startsWith(`"${OWN_IDS}`);
}

/** The answer to a request came, and nobody can read it: the side that waits for it gets an error instead. */
export function answeredFor(ledger: Ledger, { id, reason }: Unreadable, waiting: OrderedWriter): void {
  const error = { code: -32603, message: `the answer could not be read: ${reason}` };
  const failed = frameOf(encodeError(id, error)) as Response;
  const entry = ledger.take(failed);
  if (entry?.answered) entry.answered(failed);
  else if (entry) waiting.send(failed.line);
}

function createLedger(): Ledger {
  const open = new Map<string, Unanswered>();
  const nobodys = new Set<string>();
  return {
    expect: (entry) => {
      nobodys.delete(sameId(entry.id));
      open.set(sameId(entry.id), entry);
    },
    take(response) {
      const id = sameId(idOf(response));
      if (nobodys.delete(id)) return { method: '', id, answered: () => {} };
      const found = open.get(id);
      open.delete(id);
      return found;
    },
    get: (id) => open.get(sameId(id)),
    forget: (id) => {
      open.delete(sameId(id));
    },
    giveUp(id) {
      const known = sameId(id);
      if (!open.delete(known)) return false;
      nobodys.add(known);
      return true;
    },
    all: () => [...open.values()],
  };
}
