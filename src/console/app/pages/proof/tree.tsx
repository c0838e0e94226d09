/** The signed tree over all receipts, its growth since this browser looked last, the files of an export, and the witnesses. */
import { useState } from 'preact/hooks';
import { all, call } from '../../api.ts';
import { headTrouble } from '../../checks.ts';
import { type Consistency, type Head, isGrown } from '../../tree.ts';
import { Badge, dayAndTime, Line, Trouble, useLoad } from '../../ui.tsx';
import { hasCrypto, MARKS, NoCrypto, type ReceiptRow } from './parts.tsx';

interface ProofState {
  readonly head: Head;
  readonly consistency: Consistency | null;
  readonly log: { readonly size: number; readonly at: string } | null;
  readonly witnesses: readonly {
    readonly name: string;
    readonly by: string;
    readonly kept: { readonly size: number; readonly at: string } | null;
    readonly trouble: string | null;
  }[];
}

/** The head that this browser saw last. A gateway that later shows a shorter or another tree is found out. */
const SEEN = 'tollbridge-console-tree-head';

function seenHead(): Head | undefined {
  try {
    return JSON.parse(localStorage.getItem(SEEN) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

async function treeState() {
  const keys = await (await fetch('/.well-known/harn-receipt-keys.json')).text();
  const seen = seenHead();
  const state = await call<ProofState>(`/console/api/proof${seen ? `/${seen.size}` : ''}`);
  const { head, consistency } = state;
  const wrong = await headTrouble(head, keys);
  const grown = seen && consistency ? await isGrown(consistency, seen.root, head.root) : !seen;
  // A head that does not continue the one before is shown, and never takes its place.
  if (!wrong && grown) localStorage.setItem(SEEN, JSON.stringify(head));
  return { ...state, keys, seen, wrong, grown };
}

/** The signed tree over all receipts, its growth since this browser looked last, the files of an export, and the witnesses. */
export function TreeAndWitnesses() {
  const { value, error } = useLoad(treeState, 'proof');
  if (!hasCrypto) return <NoCrypto />;
  if (!value) return <Trouble thrown={error} />;
  const { head, wrong, grown, seen, log, witnesses, keys } = value;
  return (
    <>
      <section class="card" aria-live="polite">
        <h2>The tree of all receipts</h2>
        <ul class="checks">
          <li data-check="Head" data-state={wrong ? 'bad' : 'ok'}>
            <span class={`mark ${wrong ? 'bad' : 'good'}`}>{wrong ? MARKS.bad : MARKS.ok}</span>
            <div>
              <b>Signed head</b>
              <p>
                <Line
                  text={
                    wrong ??
                    `${head.size} ${head.size === 1 ? 'receipt' : 'receipts'} at ${dayAndTime(head.at)}, root ${head.root}`
                  }
                />
              </p>
            </div>
          </li>
          <li data-check="Consistency" data-state={grown ? 'ok' : 'bad'}>
            <span class={`mark ${grown ? 'good' : 'bad'}`}>{grown ? MARKS.ok : MARKS.bad}</span>
            <div>
              <b>Consistency</b>
              <p>
                {!seen
                  ? 'This browser has seen no head before; it keeps this one.'
                  : grown
                    ? `It continues the ${seen.size} receipts that this browser saw at ${dayAndTime(seen.at)}: none was changed or removed.`
                    : `It does not continue the ${seen.size} receipts that this browser saw at ${dayAndTime(seen.at)}: some were changed or removed.`}
              </p>
            </div>
          </li>
        </ul>
      </section>
      <section class="card">
        <h2>Export and witnesses</h2>
        <p class="soft">
          The files that <code>tollbridge verify DIR</code> reads, for the receipts you can see. With the events of the
          whole log: <code>tollbridge export --to DIR</code>.
        </p>
        <div class="filters">
          <Download
            name="receipts.jsonl"
            text={async () => {
              // The list on the page ends somewhere; an export does not.
              const every = await all<ReceiptRow>('/v1/receipts', Number.POSITIVE_INFINITY);
              return every.map(({ wire }) => `${JSON.stringify(wire.payload)}\n`).join('');
            }}
          />
          <Download name="keys.json" text={() => keys} />
          <Download name="tree-head.json" text={() => JSON.stringify(head, undefined, 2)} />
        </div>
        <p class="soft">
          {log
            ? `Last signed head of the log: ${log.size.toLocaleString('en')} events at ${dayAndTime(log.at)}.`
            : 'No head of the log is signed yet.'}
        </p>
        {witnesses.length === 0 && <p>No witness keeps heads of this log.</p>}
        <table>
          <tbody>
            {witnesses.map(({ name, by, kept, trouble }) => (
              <tr key={name}>
                <td>
                  <b>
                    <Line text={name} />
                  </b>{' '}
                  <span class="soft">{by}</span>
                </td>
                <td>
                  <Badge tone={trouble ? 'bad' : kept ? 'good' : 'warn'}>
                    {trouble
                      ? 'in trouble'
                      : kept && log && kept.size >= log.size
                        ? 'up to date'
                        : kept
                          ? 'behind'
                          : 'nothing sent yet'}
                  </Badge>
                </td>
                <td class="soft">
                  {trouble ? (
                    <Line text={trouble} />
                  ) : (
                    kept && `${kept.size.toLocaleString('en')} events at ${dayAndTime(kept.at)}`
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

/** A file made in the page. */
function Download({ name, text }: { readonly name: string; readonly text: () => string | Promise<string> }) {
  const [trouble, setTrouble] = useState<unknown>();
  const save = async () => {
    const url = URL.createObjectURL(new Blob([await text()], { type: 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <>
      <button type="button" onClick={() => void save().catch(setTrouble)}>
        Download {name}
      </button>
      <Trouble thrown={trouble} />
    </>
  );
}
