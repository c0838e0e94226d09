/**
 * Both directions of one connection and their unanswered requests. Ids belong to a direction: both sides count from zero, so
 * there is a ledger for each. Our own requests use ids that neither side uses.
 */
import type { JsonObject } from '../../../../src/index.ts';
import { sameId } from '../../../../src/transport/json-rpc/raw-id.ts';
import type { OrderedWriter } from '../../../../src/transport/ndjson/ordered-writer.ts';
import { type Aliases, createAliases } from './aliases.ts';
import { encode, encodeError, frameOf, idOf, type Request, type Response, type Unreadable } from './frame.ts';

export interface Unanswered {
  readonly method: string;
  /** The raw id. */
  readonly id: string;
  /** Receives the response; without it the response is forwarded unchanged. */
  readonly answered?: (response: Response) => void;
}

export interface Ledger {
  expect(entry: Unanswered): void;
  /** The request this responds to, which is then no longer pending. */
  take(response: Response): Unanswered | undefined;
  get(id: string): Unanswered | undefined;
  forget(id: string): void;
  /** The request was answered otherwise, or canceled: a later response is dropped. False when it was not pending. */
  giveUp(id: string): boolean;
  all(): readonly Unanswered[];
}

export interface Wires {
  readonly editor: OrderedWriter;
  readonly agent: OrderedWriter;
  /** Session ids that differ on the two sides. */
  readonly aliases: Aliases;
  /** Requests of the editor to the agent. */
  readonly calls: Ledger;
  /** Requests of the agent, and of the relay, to the editor. */
  readonly asks: Ledger;
  /** Forwards the agent's request and resolves with the editor's response. Rejects when the editor has disconnected. */
  askEditor(request: Request, line?: Buffer): Promise<Response>;
  askAgent(request: Request, line?: Buffer): Promise<Response>;
  /** Sends a request of ours to the editor. */
  put(method: string, params: JsonObject, answered: (response: Response) => void): string;
  /** Sends a request of ours to the agent. Rejects when the agent has disconnected. */
  request(method: string, params: JsonObject): Promise<Response>;
  /** Cancels a question at the editor; a later response to it is dropped. */
  withdraw(id: string): void;
  /** Fails all requests that wait for this side, because it has disconnected. */
  gone(side: 'editor' | 'agent', why: Error): void;
}

export function createWires(editor: OrderedWriter, toAgent: OrderedWriter): Wires {
  const aliases = createAliases();
  const agent = aliases.toAgent(toAgent);
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
    aliases,
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
    request(method, params) {
      count += 1;
      const message = { jsonrpc: '2.0', id: `${OWN_IDS}${count}`, method, params };
      return ask('agent', { kind: 'request', method, message, line: encode(message) });
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

/** An id that only we use. */
export function isOwnId(id: string): boolean {
  return id.startsWith(`"${OWN_IDS}`);
}

/** The response to a request is unreadable: the requester gets an error instead. */
export function answeredFor(ledger: Ledger, { id, reason }: Unreadable, waiting: OrderedWriter): void {
  const error = { code: -32603, message: `the answer could not be read: ${reason}` };
  const failed = frameOf(encodeError(id, error)) as Response;
  const entry = ledger.take(failed);
  if (entry?.answered) entry.answered(failed);
  else if (entry) waiting.send(failed.line);
}

function createLedger(): Ledger {
  const open = new Map<string, Unanswered>();
  const abandoned = new Set<string>();
  return {
    expect: (entry) => {
      abandoned.delete(sameId(entry.id));
      open.set(sameId(entry.id), entry);
    },
    take(response) {
      const id = sameId(idOf(response));
      if (abandoned.delete(id)) return { method: '', id, answered: () => {} };
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
      abandoned.add(known);
      return true;
    },
    all: () => [...open.values()],
  };
}
