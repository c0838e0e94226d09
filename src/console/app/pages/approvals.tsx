/** What waits for a person: the act whole, as it will run, and the answer. Every control works by keyboard. */
import { useEffect, useState } from 'preact/hooks';
import type { Me } from '../api.ts';
import { useWaiting, waiting } from '../live/waiting.ts';
import { go, Link } from '../router.tsx';
import { Empty, Title, useKeys } from '../ui.tsx';
import { Card } from './approvals/card.tsx';
import { Entry } from './approvals/entry.tsx';

export function Approvals({ me, id }: { readonly me: Me; readonly id: string }) {
  const { list, ended, loaded } = useWaiting();
  // The oldest becomes the address, so that it stays in sight when it is answered here or elsewhere.
  const oldest = list[0]?.id ?? '';
  useEffect(() => {
    if (!id && oldest) go(`/approvals/${oldest}`, 'replace');
  }, [id, oldest]);
  const current = id;
  const at = list.findIndex((one) => one.id === current);
  const move = (by: number) => {
    const next = list[at < 0 ? 0 : Math.min(list.length - 1, Math.max(0, at + by))];
    if (next) go(`/approvals/${next.id}`, 'replace');
  };
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });

  return (
    <div class="page">
      <Title note={list.length === 0 ? 'None pending' : `${list.length} pending, oldest first`} actions={<Notices />}>
        Approvals
      </Title>
      {list.length === 0 && !current ? (
        loaded && (
          <Empty title="Nothing waits for you">
            When a rule says <code>ask</code>, the act waits here until a person answers.{' '}
            <Link to="/activity?group=approval">Past approvals</Link>
          </Empty>
        )
      ) : (
        <div class="split">
          <ol class="queue" aria-label="Pending approvals">
            {list.map((one) => (
              <li key={one.id}>
                <Entry one={one} current={one.id === current} />
              </li>
            ))}
          </ol>
          {current && (
            <Card
              key={current}
              id={current}
              me={me}
              ended={ended.get(current)}
              next={() => {
                const rest = waiting.list.filter((one) => one.id !== current);
                go(rest[0] ? `/approvals/${rest[0].id}` : '/approvals', 'replace');
              }}
            />
          )}
        </div>
      )}
    </div>
  );
}

/** Asked for only when a person presses the button, as browsers want it. */
function Notices() {
  const [state, setState] = useState(() => ('Notification' in window ? Notification.permission : 'denied'));
  if (state !== 'default') return null;
  return (
    <button type="button" class="quiet" onClick={() => void Notification.requestPermission().then(setState)}>
      Notify me of new approvals
    </button>
  );
}
