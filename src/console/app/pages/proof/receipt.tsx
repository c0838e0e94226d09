/** One receipt: what it says, the checks of it in this browser, and its document, open to a change of any byte. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { call } from '../../api.ts';
import { type Check, checksOf, type OtherExport } from '../../checks.ts';
import { bag, type LogEvent, str } from '../../rows.ts';
import type { Head, Inclusion } from '../../tree.ts';
import { Copy, Line, Title, Trouble, useLoad } from '../../ui.tsx';
import { type Bag, hasCrypto, listOf, MARKS, NoCrypto, Outcome, type ReceiptRow } from './parts.tsx';
import { Readable } from './readable.tsx';

const TONES = { ok: 'good', bad: 'bad', unknown: 'warn' } as const;

/** Where the receipt stands in the signed tree, and the one before it in its chain where that may be seen. */
interface Place {
  readonly head: Head;
  readonly inclusion: Inclusion;
  readonly before: ReceiptRow | null;
}

function taskOf({ wire }: ReceiptRow): string {
  return str(bag(wire.payload.identifiers).task_id);
}

export function OneReceipt({ row }: { readonly row: ReceiptRow }) {
  const original = useMemo(() => JSON.stringify(row.wire.payload, undefined, 2), [row.id]);
  const [text, setText] = useState(original);
  const [checks, setChecks] = useState<readonly Check[]>();
  const [other, setOther] = useState<OtherExport>();
  const [trouble, setTrouble] = useState<unknown>();
  const { value: given } = useLoad(
    async () => ({
      keys: await (await fetch('/.well-known/harn-receipt-keys.json')).text(),
      schema: await call<Bag>('/schemas/receipt-2026-04-25.schema.json').catch(() => undefined),
      tree: await call<Place>(`/console/api/proof/receipts/${row.id}`).catch(() => undefined),
      events: taskOf(row)
        ? await call<{ data: readonly LogEvent[] }>(`/console/api/tasks/${taskOf(row)}/log`).then(
            ({ data }) => data,
            () => undefined,
          )
        : undefined,
    }),
    row.id,
  );
  useEffect(() => {
    if (!given) return;
    let current = true;
    const others = [row, given.tree?.before].flatMap((one) => (one ? [one.wire.payload] : []));
    checksOf({ text, others, other, ...given }).then((found) => current && setChecks(found), setTrouble);
    return () => {
      current = false;
    };
  }, [text, given, other]);
  const failed = checks?.filter(({ state }) => state === 'bad') ?? [];
  const receipt = row.wire.payload;
  return (
    <div class="page">
      <Title note={<Outcome receipt={receipt} />} actions={<Copy text={text} label="Copy document" />}>
        Receipt <span class="mono">{row.id}</span>
      </Title>
      <div class="stack">
        <section class="card">
          <h2>What it says</h2>
          <Readable receipt={receipt} />
        </section>
        <section class="card" aria-live="polite">
          <h2>
            {!checks
              ? hasCrypto
                ? 'Checking…'
                : 'Not checked'
              : failed.length === 0
                ? 'Checked in this browser: nothing is wrong'
                : `Broken: ${failed.map(({ name }) => name.toLowerCase()).join(', ')}`}
          </h2>
          {!hasCrypto && <NoCrypto />}
          {hasCrypto && <Trouble thrown={trouble} />}
          <ul class="checks">
            {checks?.map(({ name, state, found }) => (
              <li key={name} data-check={name} data-state={state}>
                <span class={`mark ${TONES[state]}`}>{MARKS[state]}</span>
                <div>
                  <b>{name}</b>
                  <p>
                    <Line text={found} />
                  </p>
                </div>
              </li>
            ))}
          </ul>
          {listOf(bag(receipt.metadata).linked_receipts).length > 0 && <OtherGateway chosen={setOther} />}
        </section>
        <section class="card">
          <h2>The document</h2>
          <p class="soft">
            Change any byte: the checks above run again on what stands here. The log is not changed by it.
          </p>
          <textarea
            class="code"
            aria-label="The receipt as JSON"
            spellcheck={false}
            rows={24}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <p>
            <button type="button" disabled={text === original} onClick={() => setText(original)}>
              Restore
            </button>
          </p>
        </section>
      </div>
    </div>
  );
}

/** Linked receipts are checked against the documents of the other gateway, which a person brings. */
function OtherGateway({ chosen }: { readonly chosen: (files: OtherExport) => void }) {
  const [trouble, setTrouble] = useState<unknown>();
  const read = async (files: readonly File[]) => {
    const named = (name: string) => files.find((file) => file.name === name)?.text();
    const [receipts, keys] = await Promise.all([named('receipts.jsonl'), named('keys.json')]);
    if (receipts === undefined || keys === undefined) throw new Error('Choose receipts.jsonl and keys.json together.');
    chosen({ receipts, keys });
  };
  return (
    <p>
      <label>
        Check the links: receipts.jsonl and keys.json of the other gateway's export{' '}
        <input
          type="file"
          multiple
          onChange={(event) => {
            setTrouble(undefined);
            read([...(event.currentTarget.files ?? [])]).catch(setTrouble);
            // The same names can be chosen again, after the files have changed.
            event.currentTarget.value = '';
          }}
        />
      </label>
      <Trouble thrown={trouble} />
    </p>
  );
}
