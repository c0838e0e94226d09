/**
 * A peer's description of itself, for the card we publish in its place: its skills, and what it says it is. Its own addresses,
 * keys and provider are not passed on, and neither is its host where a text names it.
 */
import type { AgentCard } from '@a2a-js/sdk';
import { type About, beginning, visibleText } from '../../../../src/index.ts';
import { within } from '../../../../src/transport/sse/silence.ts';
import type { PeerSettings } from '../config.ts';

/** A card is read again after this long, and a peer that did not answer is asked again. */
const FRESH_MS = 5 * 60_000;
const RETRY_MS = 30_000;
/** How long a reader of our card waits for the peer's. */
const WAIT_MS = 2_000;
const MOST_SKILLS = 100;
const LONGEST = 2_000;

export function createDescription(
  settings: Pick<PeerSettings, 'description' | 'name' | 'hosts'>,
  otherwise: About,
  read: () => Promise<AgentCard>,
): () => Promise<About> {
  let known = otherwise;
  let dueAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    const next = await read()
      .then((card) => described(card, settings))
      .catch(() => undefined);
    known = next ?? known;
    dueAt = performance.now() + (next ? FRESH_MS : RETRY_MS);
    reading = undefined;
  }

  return async () => {
    if (performance.now() < dueAt) return known;
    reading ??= refresh();
    await within(reading, WAIT_MS);
    return known;
  };
}

function described(
  card: AgentCard,
  { description, name, hosts }: Pick<PeerSettings, 'description' | 'name' | 'hosts'>,
): About {
  const plain = (text: string) =>
    beginning(
      hosts.reduce((shown, host) => shown.replaceAll(host, name), visibleText(text)),
      LONGEST,
    );
  const said = description ?? plain(card.description ?? '');
  return {
    ...(said && { description: said }),
    ...(card.version && { version: plain(card.version) }),
    skills: (card.skills ?? []).slice(0, MOST_SKILLS).map((skill) => ({
      id: plain(skill.id),
      name: plain(skill.name),
      description: plain(skill.description),
      tags: (skill.tags ?? []).map(plain),
      examples: (skill.examples ?? []).map(plain),
    })),
  };
}
