/** Names that imply a secret. Names about secrets (`secret_name`, `max_tokens`) do not. */

/** Without case, dashes, underscores, dots and spaces. */
const EXACT = new Set([
  'authorization',
  'proxyauthorization',
  'xauthorization',
  'cookie',
  'cookies',
  'setcookie',
  'pwd',
  'bearer',
  'credential',
  'credentials',
  'secretvalue',
  'securitytoken',
  'privatekeypem',
]);

/** A name that ends in one of these is a secret of that kind: `db_password`, `x-goog-api-key`, `AWS_SECRET_ACCESS_KEY`. */
const ENDINGS = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'apikey',
  'accesstoken',
  'refreshtoken',
  'idtoken',
  'authtoken',
  'sessiontoken',
  'bearertoken',
  'privatekey',
  'secretkey',
  'secretaccesskey',
];

/** Query parameters have shorter names than members: there `key` and `sig` grant access. */
const PARAMETERS = new Set([
  'token',
  'key',
  'auth',
  'sig',
  'signature',
  'xamzsignature',
  'xamzcredential',
  'xamzsecuritytoken',
  'xgoogsignature',
  'xgoogcredential',
]);

const ENV_TOKEN = /^[A-Z][A-Z0-9_]*_TOKEN$/;

/** Names of secrets are never longer; a longer string is content. */
const LONGEST = 100;

export interface SecretNames {
  /** A member, header or variable of this name holds a secret. */
  member(name: string): boolean;
  /** The same, for the query of a URL and the flags of a command. */
  parameter(name: string): boolean;
}

export function createSecretNames(extra: readonly string[] = []): SecretNames {
  const exact = new Set([...EXACT, ...extra.map(plain)]);

  const member = (name: string): boolean => {
    if (name.length > LONGEST) return false;
    const bare = plain(name);
    return exact.has(bare) || ENDINGS.some((ending) => bare.endsWith(ending)) || ENV_TOKEN.test(name);
  };
  return { member, parameter: (name) => member(name) || PARAMETERS.has(plain(name)) };
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[-_.\s]/g, '');
}
