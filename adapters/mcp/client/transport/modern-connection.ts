/** The one connection that all requests to a server of the modern era share. It is opened when it is needed, and again after it has closed. */
import { CODES } from '../../../../mappings/mcp.ts';
import { serverFrameTrouble } from '../../frame-rules.ts';
import { failed, type Notice, type Request } from '../../frames.ts';
import type { Unasked, Wire } from './transport.ts';

export interface ModernConnection {
  /** No promise while one is open, so that calls need not await one. */
  wire(): Wire | Promise<Wire>;
  close(): Promise<void>;
}

interface ModernConnectionDeps {
  open(unasked: Unasked): Promise<Wire>;
  /** Receives notifications that belong to no request. */
  received(frame: Notice): void;
  refused(method: string, reason: string): void;
}

export function createModernConnection({ open, received, refused }: ModernConnectionDeps): ModernConnection {
  let shared: Promise<Wire> | undefined;
  let ready: Wire | undefined;

  function turnedAway(wire: Promise<Wire>, frame: Notice | Request, why: string): void {
    refused(frame.method, why);
    if (!('id' in frame)) return;
    const { id } = frame;
    wire.then((open) => open.respond(id, failed(CODES.methodNotFound, why))).catch(() => {});
  }

  function sharedWire(): Promise<Wire> {
    if (shared) return shared;
    const opening = open((frame) => {
      const trouble = serverFrameTrouble(frame);
      // In this era servers ask clients only in results.
      if ('id' in frame || trouble) return turnedAway(opening, frame, trouble ?? NO_REQUESTS);
      received(frame);
    });
    shared = opening;
    const forget = () => {
      if (shared === opening) [shared, ready] = [undefined, undefined];
    };
    opening.then((wire) => {
      if (shared === opening) ready = wire;
      return wire.gone.finally(forget);
    }, forget);
    return opening;
  }

  return {
    wire: () => ready ?? sharedWire(),
    async close() {
      const wire = await shared?.catch(() => undefined);
      await wire?.close();
    },
  };
}

const NO_REQUESTS = 'a server makes no requests in this revision';
