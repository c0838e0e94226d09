/**
 * Agent cards: what a peer may know of an agent before it calls. Built from the mounted agents, signed over the JSON that is
 * sent, and byte-identical until something changes. An agent's description of itself is data here, never an instruction.
 */

import { createHash } from 'node:crypto';
import { AgentCard, canonicalizeAgentCard } from '@a2a-js/sdk';
import { EXTENSIONS, PROTOCOL } from '../../../mappings/a2a.ts';
import { PROTOCOL as LEGACY } from '../../../mappings/a2a-0.3.ts';
import { type AgentFace as AgentInfo, type Deps, type JsonObject, type Skill, VERSION } from '../../../src/index.ts';
import { detachedJws } from '../../../src/transport/http/detached-jws.ts';
import type { A2aSettings } from '../config.ts';

export interface CardDeps {
  readonly settings: A2aSettings;
  readonly sign: Deps['sign'];
  /** `host:port`, when gRPC is served for this agent. */
  readonly grpc: string | undefined;
}

/** A card as sent, and its entity tag. */
export interface MadeCard {
  readonly wire: JsonObject;
  readonly card: AgentCard;
  readonly etag: string;
}

const REQUIRED = [{ schemes: { bearer: { list: [] } } }];
const MODES = ['text/plain', 'application/json', 'application/octet-stream', 'image/*'];

const ABOUT: Readonly<Record<keyof typeof EXTENSIONS, string>> = {
  record: 'Tasks name their session and, once they have ended, their signed receipt.',
  asks: 'Questions come with a data part that says what is asked and how an answer looks.',
  activity: 'Status updates also tell of calls, plans and costs. On request.',
  resume: 'Updates carry a cursor; subscribing with it in Last-Event-ID goes on after it without loss. On request.',
  once: 'A message id is a key: sent twice, it makes one task. On request, or with an Idempotency-Key header.',
  visibility:
    'Metadata of a message or a part may say that it is public, internal or receipt_only; any other word is refused.',
  pieces:
    'Text is streamed while it is written, in artifact updates to be appended. On request; otherwise each text comes once, whole.',
};

export function makeCard(
  agent: AgentInfo,
  base: string,
  { settings, sign, grpc }: CardDeps,
  more: readonly Skill[] = [],
) {
  const { name, about } = agent;
  const interfaces = (version: string) => [
    { url: base, protocolBinding: 'JSONRPC', protocolVersion: version },
    { url: base, protocolBinding: 'HTTP+JSON', protocolVersion: version },
    ...(grpc ? [{ url: grpc, protocolBinding: 'GRPC', protocolVersion: version }] : []),
  ];
  const skills = about.skills?.length ? about.skills : [runSkill(name)];
  const card: JsonObject = {
    name,
    description:
      about.description ?? `The agent ${name}, behind a gateway that asks policy first and proves what happened.`,
    version: about.version ?? VERSION,
    supportedInterfaces: [...interfaces(PROTOCOL), ...(settings.legacy ? interfaces(LEGACY) : [])],
    ...(settings.provider && { provider: settings.provider }),
    capabilities: {
      streaming: true,
      pushNotifications: settings.push.enabled,
      extendedAgentCard: settings.extendedCard,
      extensions: Object.entries(EXTENSIONS).map(([key, uri]) => ({
        uri,
        description: ABOUT[key as keyof typeof EXTENSIONS],
        required: false,
      })),
    },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    securityRequirements: REQUIRED,
    defaultInputModes: [...(settings.inputModes ?? MODES)],
    defaultOutputModes: ['text/plain', 'application/json', 'application/octet-stream'],
    skills: [
      ...skills.map((skill) => ({ ...skill, tags: [name] })),
      ...more.map(({ id, name: tool, description, source }) => ({
        id,
        name: tool,
        description,
        tags: ['tool', ...(source ? [source] : [])],
      })),
    ],
  };
  return finished(card, sign);
}

function runSkill(name: string) {
  return { id: 'run', name: 'Run a task', description: `Gives ${name} work in plain words.` };
}

function finished(card: JsonObject, sign: Deps['sign']): MadeCard {
  // Through the codec and back: the signature covers what any reader of the protocol makes of it.
  const plain = AgentCard.toJSON(AgentCard.fromJSON(card)) as JsonObject;
  // The codec leaves out an empty list, and a strict reader refuses a scheme without one; verifying leaves it out again.
  const wire = { ...(sign ? signed(plain, sign) : plain), securityRequirements: REQUIRED };
  const etag = `"${createHash('sha256').update(JSON.stringify(wire)).digest('hex').slice(0, 32)}"`;
  return { wire, card: AgentCard.fromJSON(wire), etag };
}

/** A detached JWS over the canonical text of the JSON form without its signatures. */
function signed(card: JsonObject, sign: NonNullable<Deps['sign']>): JsonObject {
  // The SDK's type has the members of its decoded form; the canonical text is that of the JSON form.
  return { ...card, signatures: [detachedJws(canonicalizeAgentCard(card as unknown as AgentCard), sign)] };
}
