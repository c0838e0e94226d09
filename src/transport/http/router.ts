/**
 * The one router of the HTTP port. Every door declares its routes as data; a path has one owner, and two doors that claim
 * the same one are a mistake that is reported when the second opens. Which door gets a request is decided here, once, by
 * an Express router; what lies below a door's path is the door's own business.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, Response, Router } from 'express';
import { Fault } from '../../model/faults.ts';
import { own } from '../../model/values/own.ts';
import type { HttpRoute, NameLocation, UpgradeHandler } from '../../ports/index.ts';

/** Makes an empty Express router. Handed in, because Express is loaded only by a process that listens. */
export type NewRouter = () => Router;

export interface HttpRouter {
  /** Adds the routes of one door, or throws and adds none. The returned function removes them again. */
  claim(door: string, routes: readonly HttpRoute[]): () => void;
  /** `left` is called when no door answers the request, or one has thrown. */
  serve(request: IncomingMessage, response: ServerResponse, left: (thrown?: unknown) => void): void;
  upgradeAt(path: string): UpgradeHandler | undefined;
  /** The names in this request that may have the mark of a replica. */
  namesIn(request: IncomingMessage): readonly string[];
  /** The doors and the paths they claimed, for answers about a path that no door has. */
  doors(): readonly { readonly door: string; readonly paths: readonly string[] }[];
}

export interface HttpRouterDeps {
  readonly newRouter: NewRouter;
  wrongMethod(request: IncomingMessage, response: ServerResponse, allowed: readonly string[]): void;
}

interface Claim extends HttpRoute {
  readonly door: string;
  /** The path without `/*`. */
  readonly base: string;
  readonly pattern: RegExp;
}

export function createHttpRouter({ newRouter, wrongMethod }: HttpRouterDeps): HttpRouter {
  /** In the order in which they see a request. */
  let claims: readonly Claim[] = [];
  /** Made with the first request after a claim: a remote peer's receiver may claim its path long after the start. */
  let router: Router | undefined;
  /** Those whose requests name things. */
  let naming: readonly Claim[] = [];

  function build(): Router {
    const made = newRouter();
    for (const { pattern, methods, handler } of claims) {
      if (!handler) continue;
      made.all(pattern, (request: Request, response: Response, next) => {
        if (methods && !methods.includes(request.method)) wrongMethod(request, response, methods);
        else handler(request, response, next);
      });
    }
    return made;
  }

  return {
    claim(door, routes) {
      const own = routes.map((route) => claimOf(door, route));
      const take = (next: readonly Claim[]) => {
        claims = next;
        naming = next.filter(({ names }) => names !== undefined);
        router = undefined;
      };
      take(own.reduce(withClaim, claims).toSorted(byPrecedence));
      return () => take(claims.filter((claim) => !own.includes(claim)));
    },
    serve(request, response, left) {
      router ??= build();
      router(request as Request, response as Response, left);
    },
    upgradeAt: (path) => claims.find(({ pattern, upgrade }) => upgrade && pattern.test(path))?.upgrade,
    namesIn(request) {
      const path = pathOf(request);
      const locations = naming.find(({ pattern }) => pattern.test(path))?.names ?? [];
      const said = locations.map((location) => nameAt(request, location));
      return [path, ...said].filter((name) => name?.includes('~') === true) as string[];
    },
    doors() {
      const listed = claims.filter((claim) => claim.listed !== false);
      const names = [...new Set(listed.map(({ door }) => door))].sort();
      return names.map((door) => ({
        door,
        paths: listed.filter((each) => each.door === door).map(({ path }) => path),
      }));
    },
  };
}

/** Literal segments only: a pattern that a configuration could smuggle in would match other doors' paths. */
const PATH = /^(?:\/|(?:\/[A-Za-z0-9._~-]+)+(?:\/\*)?)$/;

function claimOf(door: string, route: HttpRoute): Claim {
  if (!PATH.test(route.path)) {
    throw new Fault(
      'invalid_request',
      `the door ${door} claims ${route.path}: a path is written /like/this, or /like/this/* together with every path below it`,
    );
  }
  const below = route.path.endsWith('/*');
  const base = below ? route.path.slice(0, -2) : route.path;
  const pattern = new RegExp(`^${base.replaceAll('.', '\\.')}${below ? '(?:/|$)' : '$'}`);
  return { ...route, door, base, pattern };
}

function withClaim(claims: readonly Claim[], claim: Claim): readonly Claim[] {
  const other = claims.find(({ base, shared }) => base === claim.base && shared === claim.shared);
  if (!other) return [...claims, claim];
  if (other.door === claim.door && other.handsOver && claim.handsOver) return [claim, ...claims];
  const doors =
    other.door === claim.door ? `the door ${claim.door} twice` : `the doors ${other.door} and ${claim.door}`;
  throw new Fault(
    'invalid_request',
    `${claim.base} is claimed by ${doors}: give one of them another path, or leave it shut, under "doors" in the configuration`,
  );
}

function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '/';
}

/** A header or parameter that is there twice names nothing here: which of the two counts is for the door to say. */
function nameAt({ headers, url = '/' }: IncomingMessage, location: NameLocation): string | undefined {
  if ('header' in location) {
    const value = own(headers, location.header);
    return typeof value === 'string' ? value : undefined;
  }
  const at = url.indexOf('?');
  const values = at < 0 ? [] : new URLSearchParams(url.slice(at + 1)).getAll(location.query);
  return values.length === 1 ? values[0] : undefined;
}

const RANK = { first: 0, owner: 1, last: 2 } as const;

/** The longer path is the narrower claim. */
function byPrecedence(one: Claim, other: Claim): number {
  return RANK[one.shared ?? 'owner'] - RANK[other.shared ?? 'owner'] || other.base.length - one.base.length;
}
