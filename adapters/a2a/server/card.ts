/**
 * Agent cards: what a peer may know of an agent before it calls. Built from the mounted agents, signed over the JSON that is
 * sent, and byte-identical until something changes. An agent's description of itself is data here, never an instruction.
 */

import { createHash } from 'node:crypto';
import { AgentCard } from '@a2a-js/sdk';
import { EXTENSIONS, PROTOCOL } from '../../../mappings/a2a.ts';
import { PROTOCOL as LEGACY } from '../../../mappings/a2a-0.3.ts';
import { type About, type AgentSkill, type JsonObject, type Skill, VERSION } from '../../../src/index.ts';
import type { A2aSettings } from '../config.ts';
import { toLegacyCard } from './card-0.3.ts';
import { type CardSigner, signed } from './card-signature.ts';

interface CardDeps {
  readonly settings: A2aSettings;
  /** Absent: cards are unsigned. */
  readonly signer: CardSigner | undefined;
  /** `host:port`, when gRPC is served for this agent; named in its cards unless the configuration says otherwise. */
  readonly grpc: string | undefined;
}

/** A card as it is sent to readers of 1.0, and to those that name no version. */
export interface MadeCard {
  readonly wire: SentCard;
  readonly legacy: SentCard;
  readonly card: AgentCard;
  /** With every binding that is served, also one that no card names. For the checks of the SDK; never sent. */
  readonly served: AgentCard;
}
interface SentCard {
  readonly json: JsonObject;
  readonly text: string;
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
  textAnswers: 'A text of yes or no answers an approval. On request, by the call or by the message that answers.',
  pieces:
    'Text is streamed while it is written, in artifact updates to be appended. On request; otherwise each text comes once, whole.',
};

export function makeCard(
  { name, about }: { readonly name: string; readonly about: About },
  base: string,
  { settings, signer, grpc }: CardDeps,
  more: readonly Skill[] = [],
): MadeCard {
  const named = settings.grpc?.card === false ? undefined : grpc;
  const interfaces = (version: string, at = named) => [
    { url: base, protocolBinding: 'JSONRPC', protocolVersion: version },
    { url: base, protocolBinding: 'HTTP+JSON', protocolVersion: version },
    ...(at ? [{ url: at, protocolBinding: 'GRPC', protocolVersion: version }] : []),
  ];
  const all = (at?: string) => [...interfaces(PROTOCOL, at), ...(settings.legacy ? interfaces(LEGACY, at) : [])];
  const skills = about.skills?.length ? about.skills : [runSkill(name)];
  const card: JsonObject = {
    name,
    description:
      about.description ?? `The agent ${name}, behind a gateway that asks policy first and proves what happened.`,
    version: about.version ?? VERSION,
    supportedInterfaces: all(),
    ...(settings.provider && { provider: settings.provider }),
    ...(about.documentation_url && { documentationUrl: about.documentation_url }),
    ...(about.icon_url && { iconUrl: about.icon_url }),
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
      ...skills.map(({ tags, examples, ...skill }) => ({
        ...skill,
        tags: tags?.length ? [...tags] : [name],
        ...(examples?.length && { examples: [...examples] }),
      })),
      ...more.map(({ id, name: tool, description, source }) => ({
        id,
        name: tool,
        description,
        tags: ['tool', ...(source ? [source] : [])],
      })),
    ],
  };
  // Through the codec and back: the signature covers what any reader of the protocol makes of it.
  const plain = AgentCard.toJSON(AgentCard.fromJSON(card)) as JsonObject;
  // The codec leaves out an empty list, and a strict reader refuses a scheme without one.
  const whole = signed({ ...plain, securityRequirements: REQUIRED }, signer);
  return {
    wire: sent(whole),
    legacy: sent(signed(toLegacyCard(whole), signer)),
    card: AgentCard.fromJSON(whole),
    served: AgentCard.fromJSON({ ...whole, supportedInterfaces: all(grpc) }),
  };
}

function sent(json: JsonObject): SentCard {
  const text = JSON.stringify(json);
  return { json, text, etag: `"${createHash('sha256').update(text).digest('hex').slice(0, 32)}"` };
}

function runSkill(name: string): AgentSkill {
  return { id: 'run', name: 'Run a task', description: `Gives ${name} work in plain words.` };
}
