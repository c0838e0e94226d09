/** Signs in by the printed link, whose code is behind the `#`, or by an API key. */
import { useEffect, useState } from 'preact/hooks';
import { type Me, signIn } from '../api.ts';
import iconUrl from '../icon.svg';
import { Trouble } from '../ui.tsx';

export function SignIn({ signedIn }: { readonly signedIn: (me: Me) => void }) {
  const [code] = useState(() => location.hash.slice(1));
  const [busy, setBusy] = useState(code !== '');
  const [trouble, setTrouble] = useState<unknown>();
  const [key, setKey] = useState('');

  const attempt = async (how: { code: string } | { key: string }) => {
    setBusy(true);
    setTrouble(undefined);
    try {
      signedIn(await signIn(how));
    } catch (thrown) {
      setTrouble(thrown);
      setBusy(false);
    }
  };
  useEffect(() => {
    if (!code) return;
    // The code is used up; it need not stay in the address or in the history.
    history.replaceState(null, '', '/sign-in');
    void attempt({ code });
  }, []);

  return (
    <main class="alone">
      <form
        class="card sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          void attempt({ key: key.trim() });
        }}
      >
        <img src={iconUrl} alt="" width="40" height="40" />
        <h1>Sign in to Tollbridge</h1>
        {busy ? (
          <p role="status">Signing in…</p>
        ) : (
          <>
            <p>
              Open the link that <code>tollbridge serve</code> printed, or make a new one with{' '}
              <code>tollbridge console link</code>.
            </p>
            <Trouble thrown={trouble} />
            <label for="key">Or use an API key</label>
            <input
              id="key"
              type="password"
              autocomplete="off"
              value={key}
              onInput={(event) => setKey(event.currentTarget.value)}
              placeholder="tbk_…"
            />
            <button type="submit" class="primary" disabled={key.trim() === ''}>
              Sign in
            </button>
          </>
        )}
      </form>
    </main>
  );
}
