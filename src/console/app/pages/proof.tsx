/** Receipts: readable, checked here in the browser, and open to a change of any byte to see which check notices. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { all, call } from '../api.ts';
import { type Check, checksOf, headTrouble, type OtherExport } from '../checks.ts';
import { Link } from '../router.tsx';
import { bag, type LogEvent, str } from '../rows.ts';
import { type Consistency, type Head, type Inclusion, isGrown } from '../tree.ts';
import { Badge, Copy, dayAndTime, Empty, Line, Title, Trouble, useLoad } from '../ui.tsx';

type Bag = Readonly<Record<string, unknown>>;
interface ReceiptRow {
  readonly id: string;
  readonly issued_at?: string;
  readonly created_at: string;
  readonly wire: { readonly payload: Bag };
}

const MARKS = { ok: '✓', bad: '✕', unknown: '–' } as const;
const TONES = { ok: 'good', bad: 'bad', unknown: 'warn' } as const;

export function Proof({ id, query }: { readonly id: string; readonly query: URLSearchParams }) {
  const task = query.get('task') ?? '';
  const { value, error } = useLoad(
    () => all<ReceiptRow>(`/v1/receipts${task ? `?task_id=${task}` : ''}`, 5000),
    `receipts ${task}`,
  );
  if (error)
    return (
      <div class="page">
        <Trouble thrown={error} />
      </div>
    );
  if (!value) return <div class="page" aria-busy="true" />;
  const found = value.find((one) => one.id === id);
  if (id && !found)
    return (
      <div class="page">
        <Empty title="There is no such receipt" />
      </div>
    );
  if (found) return <OneReceipt key={id} row={found} others={value} />;
  return <Receipts rows={value} task={task} />;
}

function Receipts({ rows, task }: { readonly rows: readonly ReceiptRow[]; readonly task: string }) {
  return (
    <div class="page">
      <Title
        note={`${rows.length} receipts${task && ' of one task'}`}
        actions={task && <Link to="/proof">All receipts</Link>}
      >
        Proof
      </Title>
      {rows.length === 0 ? (
        <Empty title="No receipt yet">A receipt is issued when a task ends.</Empty>
      ) : (
        <div class="stack">
          <section class="card table-wrap" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <th>Receipt</th>
                  <th>Outcome</th>
                  <th>Calls</th>
                  <th>Issued</th>
                  <th>Hash</th>
                </tr>
              </thead>
              <tbody>
                {rows.toReversed().map(({ id, wire: { payload }, created_at }) => (
                  <tr key={id}>
                    <td>
                      <Link to={`/proof/${id}`}>{id}</Link>
                    </td>
                    <td>
                      <Outcome receipt={payload} />
                    </td>
                    <td class="n">{listOf(bag(payload.side_effects).tool_calls).length}</td>
                    <td>{dayAndTime(created_at)}</td>
                    <td class="mono soft">{str(bag(payload.chain).receipt_hash).slice(7, 23)}…</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
          <TreeAndWitnesses rows={rows} />
        </div>
      )}
    </div>
  );
}

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
function TreeAndWitnesses({ rows }: { readonly rows: readonly ReceiptRow[] }) {
  const { value, error } = useLoad(treeState, 'proof');
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
                <Line text={wrong ?? `${head.size} receipts at ${head.at}, root ${head.root}`} />
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
        <p class="choice">
          <Download
            name="receipts.jsonl"
            text={() => rows.map(({ wire }) => `${JSON.stringify(wire.payload)}\n`).join('')}
          />
          <Download name="keys.json" text={() => keys} />
          <Download name="tree-head.json" text={() => JSON.stringify(head, undefined, 2)} />
        </p>
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
function Download({ name, text }: { readonly name: string; readonly text: () => string }) {
  return (
    <button
      type="button"
      onClick={() => {
        const url = URL.createObjectURL(new Blob([text()], { type: 'application/octet-stream' }));
        const link = document.createElement('a');
        link.href = url;
        link.download = name;
        link.click();
        setTimeout(() => URL.revokeObjectURL(url), 10_000);
      }}
    >
      Download {name}
    </button>
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

function listOf(value: unknown): readonly Bag[] {
  return Array.isArray(value) ? (value as readonly Bag[]) : [];
}

function Outcome({ receipt }: { readonly receipt: Bag }) {
  const status = str(bag(receipt.lifecycle).final_state);
  return (
    <Badge tone={/succe|compl|ok/i.test(status) ? 'good' : status ? 'bad' : ''}>
      {status.toLowerCase() || 'ended'}
    </Badge>
  );
}

function taskOf({ wire }: ReceiptRow): string {
  return str(bag(wire.payload.identifiers).task_id);
}

function OneReceipt({ row, others }: { readonly row: ReceiptRow; readonly others: readonly ReceiptRow[] }) {
  const original = useMemo(() => JSON.stringify(row.wire.payload, undefined, 2), [row.id]);
  const [text, setText] = useState(original);
  const [checks, setChecks] = useState<readonly Check[]>();
  const [other, setOther] = useState<OtherExport>();
  const { value: given } = useLoad(
    async () => ({
      keys: await (await fetch('/.well-known/harn-receipt-keys.json')).text(),
      schema: await call<Bag>('/schemas/receipt-2026-04-25.schema.json').catch(() => undefined),
      tree: await call<{ head: Head; inclusion: Inclusion }>(`/console/api/proof/receipts/${row.id}`).catch(
        () => undefined,
      ),
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
    const workspace = others
      .map(({ wire }) => wire.payload)
      .filter((one) => bag(one.identifiers).workspace_ref === bag(row.wire.payload.identifiers).workspace_ref);
    void checksOf({ text, others: workspace, other, ...given }).then((found) => current && setChecks(found));
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
              ? 'Checking…'
              : failed.length === 0
                ? 'Checked in this browser: nothing is wrong'
                : `Broken: ${failed.map(({ name }) => name.toLowerCase()).join(', ')}`}
          </h2>
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

function Readable({ receipt }: { readonly receipt: Bag }) {
  const ids = bag(receipt.identifiers);
  const {
    tool_calls: calls,
    fs_writes: writes,
    network_egress: sent,
    a2a_handoffs: handoffs,
  } = bag(receipt.side_effects);
  const lifecycle = bag(receipt.lifecycle);
  const consumed = bag(bag(receipt.autonomy_budget).consumed);
  const facts: readonly (readonly [string, string])[] = [
    ['Task', str(ids.task_id)],
    ['From, to', `${str(lifecycle.started_at)} – ${str(lifecycle.completed_at)}`],
    ['Failure', str(bag(lifecycle.failure).message)],
    ['Issued', `${str(receipt.issued_at)} by ${str(bag(receipt.issuer).name)} ${str(bag(receipt.issuer).version)}`],
    [
      'Consumed',
      Object.entries(consumed)
        .map(([name, value]) => `${name} ${String(value)}`)
        .join(' · '),
    ],
    [
      'Files written',
      listOf(writes)
        .map(({ path }) => str(path))
        .join(', '),
    ],
    [
      'Sent to',
      listOf(sent)
        .map(({ destination, purpose }) => `${str(destination)} (${str(purpose)})`)
        .join(', '),
    ],
    [
      'Handed to',
      listOf(handoffs)
        .map((one) => str(one.target_agent) || str(one.agent))
        .join(', '),
    ],
  ];
  const answers = listOf(receipt.approvals);
  return (
    <>
      <dl class="facts">
        {facts
          .filter(([, value]) => value.trim() !== '')
          .flatMap(([name, value]) => [
            <dt key={`${name} name`}>{name}</dt>,
            <dd key={name}>
              <Line text={value} />
            </dd>,
          ])}
      </dl>
      <div class="table-wrap" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Act</th>
              <th>Effect</th>
              <th>Decision</th>
              <th>Rule</th>
              <th>Approved by</th>
              <th>Evidence</th>
              <th>Result</th>
            </tr>
          </thead>
          <tbody>
            {listOf(calls)
              .slice(0, 500)
              .map((call) => {
                const about = bag(call.metadata);
                const answer = answers.find(({ approval_id: id }) => id === about.ask_id);
                const words = [
                  call.tool,
                  about.effect,
                  about.verdict,
                  about.rule_id,
                  answer && `${str(answer.actor)} (${str(answer.decision)})`,
                  about.evidence,
                  call.status,
                ];
                return (
                  <tr key={str(call.call_id)}>
                    {words.map((word, at) => (
                      <td key={String(at)}>
                        <Line text={str(word)} />
                      </td>
                    ))}
                  </tr>
                );
              })}
          </tbody>
        </table>
      </div>
      {listOf(calls).length === 0 && <p class="soft">No act is on record.</p>}
    </>
  );
}
