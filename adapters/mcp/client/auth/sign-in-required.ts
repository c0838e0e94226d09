/** The fault of a call by a caller that has not signed in at a server yet, or whose sign-in is no longer accepted. */
import { Fault } from '../../../../src/index.ts';
import type { CredentialOwner } from '../../../../src/transport/outbound/caller-credentials.ts';

/** The gateway's own tool, which a caller without a sign-in is shown instead of the server's. */
export const SIGN_IN = 'sign_in';

export class SignInRequired extends Fault {
  /** Where the person goes. Undefined in a process that no browser can reach. */
  readonly link: string | undefined;

  constructor(server: string, { id, tenant_id }: CredentialOwner, link: string | undefined) {
    const tenant = tenant_id === undefined ? '' : ` --tenant ${tenant_id}`;
    const how = link
      ? `open ${link} in a browser, sign in, and call the tool ${SIGN_IN} of ${server} with the code that the page shows`
      : `tollbridge mcp login ${server} --as ${id}${tenant}`;
    const details = { code: SIGN_IN_REQUIRED, server, tool: SIGN_IN, ...(link && { url: link }) };
    super('permission_denied', `${server} is used with an account of ${id}, who has to sign in first: ${how}`, {
      details,
    });
    this.link = link;
  }
}

export const SIGN_IN_REQUIRED = 'sign_in_required';
