/** Rules in the console: read and tried by those who see all work, saved by an admin. */
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import type { JsonObject } from '../model/schema.ts';
import { asText } from '../model/values/as-text.ts';
import { own } from '../model/values/own.ts';
import { holds, nothingHere, requireAdmin } from './roles.ts';
import type { ConsoleRoute } from './routes.ts';
import type { RulesService } from './services.ts';

const LONGEST = 512 * 1024;
const DAY_MS = 24 * 3_600_000;
const SINCE: Readonly<Record<string, number>> = { day: DAY_MS, week: 7 * DAY_MS, month: 30 * DAY_MS };

export function ruleRoutes(rules: RulesService): readonly ConsoleRoute[] {
  return [
    {
      method: 'GET',
      path: /^\/rules$/,
      async answer({ actor }) {
        requireSight(actor);
        return await rules.inForce();
      },
    },
    {
      method: 'POST',
      path: /^\/rules\/check$/,
      async answer({ actor, body }) {
        requireSight(actor);
        const { name, text } = draftIn(body);
        return await rules.check(name, text);
      },
    },
    {
      // One JSON object per line, as each is known: a month of decisions takes a while.
      method: 'POST',
      path: /^\/rules\/compare$/,
      async answer({ actor, body, response }) {
        requireSight(actor);
        const { name, text } = draftIn(body);
        const since = own(SINCE, asText((body as { since?: unknown }).since)) ?? DAY_MS;
        const stop = new AbortController();
        response.on('close', () => stop.abort());
        const { problems } = await rules.check(name, text);
        if (problems.length > 0)
          throw new Fault('invalid_request', 'the rules have problems', {
            details: { problems: problems as readonly JsonObject[] },
          });
        response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
        for await (const one of rules.compare(name, text, since, stop.signal)) {
          if (stop.signal.aborted) break;
          if (!response.write(`${JSON.stringify(one)}\n`)) {
            await new Promise<void>((resolve) => {
              response.once('drain', resolve);
              response.once('close', resolve);
            });
          }
        }
        response.end();
        return 'answered';
      },
    },
    {
      method: 'POST',
      path: /^\/rules\/test$/,
      async answer({ actor, body }) {
        requireSight(actor);
        const { name, text } = draftIn(body);
        return await rules.test(name, text, casesIn(body));
      },
    },
    {
      method: 'PUT',
      path: /^\/rules\/cases$/,
      async answer({ actor, body }) {
        requireAdmin(actor);
        const { name } = draftIn({ text: '', ...(body as object) });
        return await rules.saveCases(name, casesIn(body), actor.id);
      },
    },
    {
      method: 'PUT',
      path: /^\/rules$/,
      async answer({ actor, body }) {
        requireAdmin(actor);
        const { name, text } = draftIn(body);
        return await rules.save(name, text, actor.id);
      },
    },
  ];
}

/** Recorded decisions are of everybody's work. */
function requireSight(actor: Actor): void {
  if (!holds(actor, 'others:read')) throw nothingHere();
}

function casesIn(body: unknown): string {
  const { cases } = (body ?? {}) as { cases?: unknown };
  if (typeof cases !== 'string') throw new Fault('invalid_request', 'cases are needed');
  if (cases.length > LONGEST) throw new Fault('invalid_request', `cases may have at most ${LONGEST} characters`);
  return cases;
}

function draftIn(body: unknown): { readonly name: string; readonly text: string } {
  const { name, text } = (body ?? {}) as { name?: unknown; text?: unknown };
  if (typeof name !== 'string' || typeof text !== 'string') {
    throw new Fault('invalid_request', 'name and text are needed');
  }
  if (text.length > LONGEST) throw new Fault('invalid_request', `rules may have at most ${LONGEST} characters`);
  return { name, text };
}
