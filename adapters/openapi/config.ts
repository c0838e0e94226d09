/** The configuration of an HTTP API that is described by an OpenAPI document. */
import { ClosedWord, EFFECTS, Fault, NonEmpty, type Static, Type } from '../../src/index.ts';
import { CallerTokens, requireDistinctTokens } from '../../src/transport/outbound/caller-credentials.ts';
import { Exchange } from '../../src/transport/outbound/token-exchange.ts';

const Optional = Type.Optional;
const Names = Type.Record(Type.String(), NonEmpty);

/** `tools.<name>.openapi` */
export const configSchema = Type.Object(
  {
    /** The document (3.0 or 3.1, JSON or YAML): an absolute path, or an address. */
    document: Type.Unsafe<string>({ type: 'string', pattern: '^(/|[A-Za-z]:\\\\|https?://)[^\\s]+$' }),
    /** The address that operations start from. When absent it is the document's first server, which has to be public and https. */
    server: Optional(Type.Unsafe<string>({ type: 'string', pattern: '^https?://[^\\s]+$' })),
    headers: Optional(Type.Record(Type.String(), Type.String())),
    /** Headers whose values are secrets, by their names in a vault. */
    header_secrets: Optional(Names),
    /** The name of a secret that is sent as a bearer token. */
    token: Optional(NonEmpty),
    caller_tokens: Optional(CallerTokens),
    exchange: Optional(Exchange),
    /** The effects of its tools, by name; otherwise the method tells: GET reads, DELETE deletes, every other writes. */
    effects: Optional(Type.Record(Type.String(), ClosedWord(EFFECTS))),
    /** Its answers hold nothing that others wrote: they taint no session. */
    trusted: Optional(Type.Boolean()),
    timeout_ms: Optional(Type.Integer({ minimum: 1 })),
    /** How often a document at an address is read again, 300000 when absent. A file is read again when it has changed. */
    refresh_ms: Optional(Type.Integer({ minimum: 1000 })),
  },
  { additionalProperties: false },
);
export type OpenApiConfig = Static<typeof configSchema>;

/** Throws where a common credential could be used in the place of a caller's own. */
export function requireOneCredential(config: OpenApiConfig): void {
  const { server, token, headers, header_secrets, caller_tokens, exchange } = config;
  const named = Object.entries({ caller_tokens, exchange, token }).flatMap(([name, value]) => (value ? [name] : []));
  if (caller_tokens) requireDistinctTokens(caller_tokens);
  if (exchange && !(exchange.audience ?? exchange.resource ?? server)) {
    const why = 'say with audience, resource or server what the exchanged token is for';
    throw new Fault('invalid_request', why, { param: '/exchange' });
  }
  const [first, second] = named;
  if (second) {
    const why = `${first} and ${second} are two credentials for one server: leave one out`;
    throw new Fault('invalid_request', why, { param: `/${second}` });
  }
  const said = [...Object.keys(headers ?? {}), ...Object.keys(header_secrets ?? {})];
  if ((caller_tokens || exchange) && said.some((name) => name.toLowerCase() === 'authorization')) {
    const why = `${first} gives each caller credentials of its own: leave out the Authorization header`;
    throw new Fault('invalid_request', why, { param: `/${first}` });
  }
}
