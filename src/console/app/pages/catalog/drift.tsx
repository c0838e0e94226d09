/** A tool that is no longer what it was: what changed, and the answer of an admin. */
import { useState } from 'preact/hooks';
import { call, type Me } from '../../api.ts';
import { bag, str } from '../../rows.ts';
import { Badge, Block, dayAndTime, Line, Trouble, useLoad } from '../../ui.tsx';
import { toneOf } from '../approvals/entry.tsx';

export interface Pin {
  readonly id: string;
  readonly name: string;
  readonly source: string | null;
  readonly version: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Who refused the definition that the tool has now, and when. */
export function refusedOf({ metadata }: Pin): { readonly by: string; readonly at: string } | undefined {
  const { version, by, at } = bag(metadata.refused);
  return version !== undefined && version === bag(metadata.pending).version ? { by: str(by), at: str(at) } : undefined;
}

const COMPARED = ['description', 'input_schema', 'output_schema'] as const;

export function Drift({ pin, me, done }: { readonly pin: Pin; readonly me: Me; readonly done: () => void }) {
  const [trouble, setTrouble] = useState<unknown>();
  const pending = bag(pin.metadata.pending);
  const { value: stated } = useLoad(
    () => call<{ stated_effect: string | null }>(`/console/api/pins/${pin.id}`),
    `${pin.id} ${str(pending.version)}`,
  );
  const refused = refusedOf(pin);
  // Read by the names of the members that changed.
  const was = pin as unknown as Readonly<Record<string, unknown>>;
  const shown = (value: unknown) =>
    typeof value === 'string' ? value : (JSON.stringify(value ?? null, undefined, 2) ?? '');
  const answer = (accept: boolean) => {
    call(`/console/api/pins/${pin.id}`, { json: { accept, version: pending.version } }).then(done, setTrouble);
  };
  const members = [
    ...COMPARED.map((name) => [name, shown(was[name]), shown(pending[name])] as const),
    ['annotations', shown(pin.metadata.annotations), shown(bag(pending.metadata).annotations)] as const,
  ];
  return (
    <section class="card drift" aria-label={`Changed definition of ${pin.name}`}>
      <h2>
        <Badge tone="bad">{refused ? 'refused' : 'changed'}</Badge>{' '}
        <Line text={`${pin.name} of ${pin.source ?? ''} is no longer what it was`} />
      </h2>
      <p class="soft" role="status">
        {refused ? (
          <Line text={`Refused by ${refused.by} at ${dayAndTime(refused.at)}. Calls of it stay refused.`} />
        ) : (
          'Calls of it are refused until an admin accepts the new definition.'
        )}
      </p>
      {members
        .filter(([, before, after]) => before !== after)
        .map(([name, before, after]) => (
          <div key={name}>
            <h3>{name}</h3>
            <div class="side">
              <div>
                <p class="soft">as pinned</p>
                <Block text={before} />
              </div>
              <div>
                <p class="soft">as it is now</p>
                <Block text={after} />
              </div>
            </div>
          </div>
        ))}
      {stated?.stated_effect && (
        <p>
          Its server states the effect <Badge tone={toneOf(stated.stated_effect)}>{stated.stated_effect}</Badge>. Who
          accepts the definition accepts this effect with it.
        </p>
      )}
      <Trouble thrown={trouble} />
      {me.role === 'admin' && (
        <div class="choice">
          {!refused && (
            <button type="button" class="no" onClick={() => answer(false)}>
              Refuse
            </button>
          )}
          <button type="button" class="yes" onClick={() => answer(true)}>
            Accept the new definition
          </button>
        </div>
      )}
    </section>
  );
}
