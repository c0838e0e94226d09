/** What a receipt costs beyond its signature: receipts built and sealed per second, against bare signatures. */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storyEvidence, storyInput } from '../../fixtures/receipts/story.ts';
import type { ChainHead } from '../../src/ports/index.ts';
import { buildReceipt } from '../../src/receipt/build/build.ts';
import { replayInput } from '../../src/receipt/build/materials.ts';
import { EMPTY_TREE } from '../../src/receipt/merkle/merkle.ts';
import { openKeyring } from '../../src/receipt/seal/keys.ts';
import { sealReceipt } from '../../src/receipt/seal/seal.ts';

export const name = 'seal';

const ROUNDS = 60;
const WARM_UP = 10;
const PER_ROUND = 250;
const TEXT = Buffer.from(`sha256:${'5'.repeat(64)}`);

/** Rounds of both take turns, so that whatever else the machine does falls on both alike. */
export async function run(): Promise<
  Array<{ bench: string; ratio: number; against: string; [figure: string]: number | string }>
> {
  const dir = await mkdtemp(join(tmpdir(), 'seal-'));
  try {
    const keyring = await openKeyring({ dir: join(dir, 'keys'), now: () => '2026-11-16T09:02:00.000Z' });
    const signer = keyring.signer();
    const evidence = storyEvidence();
    const input = storyInput(evidence, {
      issuer: { id: 'gateway', kind: 'harness', name: 'Gateway', public_key_id: signer.keyId },
    });
    let head: ChainHead = { previous: null, index: 0, tree: EMPTY_TREE };
    const seal = () => {
      const replay_input = replayInput(evidence, 'task_fix');
      const sealed = sealReceipt(buildReceipt({ ...input, replay_input }), head, signer);
      head = { previous: sealed.hash, index: head.index + 1, tree: sealed.tree };
    };
    const key = await privateKey(join(dir, 'keys', 'receipt-keys.json'));
    const bare = () => sign(null, TEXT, key);

    const [sealed, signed]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS + WARM_UP; round += 1) {
      const [a, b] = [perSecond(seal), perSecond(bare)];
      if (round >= WARM_UP) {
        sealed.push(a);
        signed.push(b);
      }
    }
    // The median of the rounds' own ratios: a pause falls on one round, not on the figure.
    const ratio = median(sealed.map((each, round) => each / signed[round]!));
    return [
      {
        bench: name,
        ratio: Number(ratio.toFixed(3)),
        against: 'bare Ed25519 signatures of a 71-byte text with the same key',
        receipts_per_second: Math.round(median(sealed)),
        signatures_per_second: Math.round(median(signed)),
      },
    ];
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The keyring's own key, taken out of its file so that nothing but the signature is measured. */
async function privateKey(file: string): Promise<KeyObject> {
  const { public_key: x, private_key: d } = JSON.parse(await readFile(file, 'utf8')).keys[0];
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
}

function perSecond(work: () => void): number {
  const start = process.hrtime.bigint();
  for (let i = 0; i < PER_ROUND; i += 1) work();
  return (PER_ROUND * 1e9) / Number(process.hrtime.bigint() - start);
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)]!;
}
