/** Doors with their addresses, and the configuration that a client of each needs. */
import { useState } from 'preact/hooks';
import { clientConfigs } from '../../client-configs.ts';
import { Block, Copy } from '../../ui.tsx';
import type { Catalog } from '../catalog.tsx';

export function Doors({ catalog }: { readonly catalog: Catalog }) {
  const [open, setOpen] = useState('');
  return (
    <section class="card">
      <h2>Doors</h2>
      <table class="stacks">
        <tbody>
          {catalog.doors.map(({ name }) => {
            const { about, address, configs } = clientConfigs(name, location.origin, catalog.agents[0]?.name ?? 'demo');
            return (
              <tr key={name}>
                <td>
                  <b>{name}</b>
                  <p class="soft">{about}</p>
                </td>
                <td>
                  <code>{address}</code>
                  {open === name &&
                    configs.map(({ title, text }) => (
                      <div key={title}>
                        <p>
                          {title} <Copy text={text} />
                        </p>
                        <Block text={text} />
                      </div>
                    ))}
                </td>
                <td class="n">
                  <button
                    type="button"
                    aria-expanded={open === name}
                    onClick={() => setOpen(open === name ? '' : name)}
                  >
                    {open === name ? 'Hide' : 'Connect'}
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="soft">
        For <code>&lt;TOKEN&gt;</code> a client on this machine takes the token that <code>tollbridge serve</code>{' '}
        printed, or an API key; elsewhere an API key: <code>tollbridge keys create</code>.
      </p>
    </section>
  );
}
