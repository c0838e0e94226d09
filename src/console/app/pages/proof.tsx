/** Receipts: readable, checked here in the browser, and open to a change of any byte to see which check notices. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { all, call } from '../api.ts';
import { type Check, checksOf } from '../checks.ts';
import { Link } from '../router.tsx';
import { bag, type LogEvent, str } from '../rows.ts';
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
  const { value: state } = useLoad(
    () => call<{ tip: string | null; witnesses: readonly { name: string; by: string }[] }>('/console/api/proof'),
    'proof',
  );
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
          <section class="card">
            <h2>Export and witnesses</h2>
            <p class="soft">
              <code>tollbridge export --to DIR</code> writes receipts, events, keys and signed heads;{' '}
              <code>tollbridge verify DIR</code> and the scripts in <code>examples/verify</code> check them without this
              gateway.
            </p>
            <p>
              {state && state.witnesses.length === 0 && 'No witness keeps heads of this log.'}
              {state?.witnesses.map(({ name, by }) => (
                <Badge key={name} tone="info">
                  {name} by {by}
                </Badge>
              ))}
            </p>
          </section>
        </div>
      )}
    </div>
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
  const { value: given } = useLoad(
    async () => ({
      keys: await (await fetch('/.well-known/harn-receipt-keys.json')).text(),
      schema: await call<Bag>('/schemas/receipt-2026-04-25.schema.json').catch(() => undefined),
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
    void checksOf({ text, others: workspace, ...given }).then((found) => current && setChecks(found));
    return () => {
      current = false;
    };
  }, [text, given]);
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
