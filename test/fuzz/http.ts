/** What the three doors on HTTP have in common: a body as it is, an answer or a refusal, and never a failure of ours. */
import type { Closable } from '../../src/ports/index.ts';
import { type Fuzzed, type FuzzGateway, inWindows, openGateway, within } from './gateway.ts';
import { type Step, steps } from './mutations.ts';

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Protocol {
  readonly headers: Readonly<Record<string, string>>;
  open(gateway: FuzzGateway): Promise<Closable>;
  /** After the door is open: what later requests are about. Undefined makes none. */
  prepare(send: Send): Promise<(step: Step, count: number) => Request | undefined>;
  /** What is wrong with this answer, beyond being a failure of ours. */
  problem?(request: Request, status: number, text: string): string | undefined;
}
export type Send = (request: Request) => Promise<{ readonly status: number; readonly text: string }>;

const WINDOW = 64;
const ANSWER_MS = 20_000;

export async function fuzzHttp(
  protocol: Protocol,
  { frames, seed }: { frames: number; seed: number },
): Promise<Fuzzed> {
  const gateway = await openGateway();
  const door = await protocol.open(gateway);
  const found: string[] = [];
  try {
    const { url } = await (gateway.deps.http as unknown as { listen(): Promise<{ url: string }> }).listen();
    const send: Send = async ({ method, path, body, headers }) => {
      const input = body === undefined ? {} : { 'content-type': 'application/json' };
      const answer = await fetch(`${url}${path}`, {
        method,
        headers: { ...protocol.headers, ...input, ...headers },
        signal: AbortSignal.timeout(ANSWER_MS),
        ...(body !== undefined && method !== 'GET' && { body: new Uint8Array(body) }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    const make = await protocol.prepare(send);
    let count = 0;
    await inWindows(steps(frames, seed), WINDOW, async (step) => {
      const request = make(step, ++count);
      if (!request) return;
      for (let time = 0; time < step.times; time += 1) {
        const answer = await within(
          ANSWER_MS,
          // A connection that was kept may be closed in the moment it is used again: clients try once more.
          send(request).catch(() => send(request).catch((cause: Error) => cause.message)),
        );
        const about = `${request.method} ${request.path} ${request.body?.toString().slice(0, 300) ?? ''}`;
        if (typeof answer === 'string') {
          found.push(`not answered (${answer}): ${about}`);
          continue;
        }
        const { status, text } = answer;
        if (status >= 500 && status !== 503) found.push(`${status} to ${about}: ${text.slice(0, 200)}`);
        const more = protocol.problem?.(request, status, text);
        if (more) found.push(`${more}: ${about}`);
      }
    });
    found.push(...(await gateway.verdict()));
    return { frames, violations: found };
  } finally {
    await door.close();
    await gateway.close();
  }
}
