/** The frame round every page: sign-in, navigation, the connection's state, the count of approvals in the tab. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, holds, type Me, onSessionChange, onSessionEnd, signOut, whoAmI } from './api.ts';
import iconUrl from './icon.svg';
import iconWaitingUrl from './icon-waiting.svg';
import { feed, useFeed } from './live/feed.ts';
import { onWaitingReported, reportWaiting } from './live/presence.ts';
import { useWaiting, waiting } from './live/waiting.ts';
import { Activity } from './pages/activity.tsx';
import { Approvals } from './pages/approvals.tsx';
import { CatalogPage } from './pages/catalog.tsx';
import { MapPage } from './pages/map.tsx';
import { Overview } from './pages/overview.tsx';
import { Proof } from './pages/proof.tsx';
import { Replay } from './pages/replay.tsx';
import { Rules } from './pages/rules.tsx';
import { SessionPage } from './pages/session.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { go, Link, useRoute } from './router.tsx';
import { Empty, Title, Trouble, useKeys } from './ui.tsx';

interface Entry {
  readonly page: string;
  readonly name: string;
  readonly key: string;
  readonly icon: string;
  /** What a reader has to hold; where one is missing, the page is not there. */
  readonly needs?: string;
}

const ENTRIES: readonly Entry[] = [
  { page: '', name: 'Overview', key: '1', icon: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z' },
  { page: 'approvals', name: 'Approvals', key: '2', needs: 'tasks:read', icon: 'M4 12l5 5L20 6' },
  { page: 'activity', name: 'Activity', key: '3', needs: 'events:read', icon: 'M3 12h4l3-7 4 14 3-7h4' },
  { page: 'sessions', name: 'Sessions', key: '4', needs: 'sessions:read', icon: 'M4 6h10M7 12h13M5 18h8' },
  { page: 'proof', name: 'Proof', key: '5', needs: 'receipts:read', icon: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z' },
  { page: 'rules', name: 'Rules', key: '6', needs: 'others:read', icon: 'M5 4h14v16H5zM9 9h6M9 13h6' },
  { page: 'catalog', name: 'Catalog', key: '7', icon: 'M4 5h7v6H4zM13 5h7v6h-7zM4 13h7v6H4zM13 13h7v6h-7z' },
  {
    page: 'map',
    name: 'Map',
    key: '8',
    needs: 'events:read',
    icon: 'M5 6h4v4H5zM15 4h4v4h-4zM15 16h4v4h-4zM9 8h6M9 9l6 8',
  },
  { page: 'replay', name: 'Replay', key: '9', needs: 'tasks:read', icon: 'M4 12a8 8 0 1 0 3-6M4 4v4h4' },
];

export function Shell() {
  const [me, setMe] = useState<Me | undefined | 'asking'>('asking');
  const [trouble, setTrouble] = useState<unknown>();
  const route = useRoute();
  // A session that is over is no trouble: the page asks to sign in.
  const failed = (thrown: unknown) => {
    if (!(thrown instanceof ApiError && thrown.status === 401)) setTrouble(thrown);
  };

  useEffect(() => {
    onSessionEnd(() => setMe(undefined));
    // Another tab of this browser signed in or out: what this page shows is of the session that its requests now carry.
    onSessionChange(() => void whoAmI().then(setMe, failed));
    // A link with a code in it starts a new session, also where another user is signed in.
    if (route.page === 'sign-in' && (location.hash.length > 1 || route.query.has('state'))) return setMe(undefined);
    whoAmI().then(setMe, failed);
  }, []);

  const known = me !== 'asking' && me !== undefined;
  const id = known ? me.actor.id : '';
  useEffect(() => {
    if (!known) return;
    void feed
      .start()
      .then(() => waiting.start())
      .catch(failed);
    return () => {
      feed.end();
      waiting.end();
    };
  }, [id]);

  if (trouble)
    return (
      <main class="alone">
        <div class="stack">
          <Trouble thrown={trouble} />
          <button type="button" onClick={() => location.reload()}>
            Try again
          </button>
        </div>
      </main>
    );
  if (me === 'asking') return <main class="alone" aria-busy="true" />;
  if (!me || route.page === 'sign-in') {
    return (
      <SignIn
        signedIn={(now) => {
          setMe(now);
          go('/', 'replace');
        }}
      />
    );
  }
  return <Frame me={me} left={() => setMe(undefined)} />;
}

function Frame({ me, left }: { readonly me: Me; readonly left: () => void }) {
  const route = useRoute();
  const pages = useRef<HTMLUListElement>(null);
  const { state } = useFeed();
  // On a small screen the pages are one row that scrolls.
  useEffect(() => {
    const show = () =>
      pages.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
    show();
    addEventListener('resize', show);
    return () => removeEventListener('resize', show);
  }, [route.page]);
  const { list } = useWaiting();
  useTab(list.length);
  useNotices();
  const entries = ENTRIES.filter(({ needs }) => !needs || holds(me, needs));
  useKeys(Object.fromEntries(entries.map(({ page, key }) => [key, () => go(`/${page}`)])));
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <nav aria-label="Pages">
        <Link to="/" class="brand" title="Overview">
          <img src={iconUrl} alt="" width="22" height="22" /> <span>Tollbridge</span>
        </Link>
        <ul ref={pages}>
          {entries.map(({ page, name, icon }) => (
            <li key={page}>
              <Link to={`/${page}`} current={route.page === page}>
                <svg viewBox="0 0 24 24" aria-hidden="true">
                  <path d={icon} />
                </svg>
                <span>{name}</span>
                {page === 'approvals' && list.length > 0 && (
                  <b class="count" title={`${list.length} waiting`}>
                    {list.length}
                  </b>
                )}
              </Link>
            </li>
          ))}
        </ul>
        <Foot me={me} left={left} />
      </nav>
      <main id="page" tabIndex={-1}>
        {state === 'waiting' && (
          <p class="offline">The gateway does not answer; trying again. What is shown may be out of date.</p>
        )}
        {entries.some(({ page }) => page === route.page) ? <View me={me} /> : <Nothing />}
      </main>
    </div>
  );
}

/** An address of no page, or of one that this reader may not see: it cannot be told which. */
function Nothing() {
  return (
    <div class="page">
      <Title>Nothing here</Title>
      <Empty title="There is no such page">
        <Link to="/">Overview</Link>
      </Empty>
    </div>
  );
}

function View({ me }: { readonly me: Me }) {
  const route = useRoute();
  switch (route.page) {
    case 'approvals':
      return <Approvals me={me} id={route.id} />;
    case 'activity':
      return <Activity query={route.query} />;
    case 'sessions':
      return <SessionPage key={route.id} id={route.id} query={route.query} />;
    case 'proof':
      return <Proof id={route.id} query={route.query} />;
    case 'rules':
      return <Rules me={me} query={route.query} />;
    case 'catalog':
      return <CatalogPage me={me} />;
    case 'map':
      return <MapPage me={me} />;
    case 'replay':
      return <Replay me={me} id={route.id} query={route.query} />;
    default:
      return <Overview me={me} />;
  }
}

const STATES = { opening: 'connecting', live: 'live', waiting: 'reconnecting', over: 'not connected' } as const;

function Foot({ me, left }: { readonly me: Me; readonly left: () => void }) {
  const { state } = useFeed();
  return (
    <div class="foot">
      <p class={`state ${state}`} role="status">
        {STATES[state]}
      </p>
      <p class="who" title={`signed in as ${me.actor.id}`}>
        <span>{me.actor.id}</span> · {me.role}
      </p>
      <button type="button" class="quiet" onClick={() => void signOut().then(left)}>
        Sign out
      </button>
    </div>
  );
}

/** The tab's title and icon say how many approvals wait; those of a tab out of sight, what the tab that follows the log reports. */
function useTab(waits: number): void {
  const [reported, setReported] = useState<number>();
  useEffect(() => onWaitingReported(setReported), []);
  useEffect(() => {
    // Looked at again, the tab reads on by itself.
    const seen = () => setReported(undefined);
    document.addEventListener('visibilitychange', seen);
    return () => document.removeEventListener('visibilitychange', seen);
  }, []);
  useEffect(() => {
    setReported(undefined);
    reportWaiting(waits);
  }, [waits]);
  const count = reported ?? waits;
  useEffect(() => {
    document.title = count > 0 ? `(${count}) Tollbridge` : 'Tollbridge';
    document.querySelector('link[rel=icon]')?.setAttribute('href', count > 0 ? iconWaitingUrl : iconUrl);
    const badge = navigator as { setAppBadge?: (count: number) => Promise<void> };
    void badge.setAppBadge?.(count).catch(() => {});
  }, [count]);
}

/** A notice says that something waits, never what: other people may see the screen. */
function useNotices(): void {
  useEffect(
    () =>
      waiting.onOpened((ask) => {
        if (!('Notification' in window) || Notification.permission !== 'granted' || !document.hidden) return;
        const notice = new Notification('An approval is waiting', { tag: ask.id });
        notice.onclick = () => {
          window.focus();
          go(`/approvals/${ask.id}`);
        };
      }),
    [],
  );
}
