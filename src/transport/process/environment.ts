/**
 * The two environments a child can have. A child that the configuration names gets the few variables every program
 * needs and those configured for it. A child that a relay command wraps gets what it would have had without us, minus
 * our own variables: an agent that could read them would hold our secrets, and could find our log.
 */

/** Needed by nearly every program; no other variable is passed on. */
const USUAL = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TERM',
  'TMPDIR',
  'TZ',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'XDG_CACHE_HOME',
  'XDG_STATE_HOME',
  'XDG_RUNTIME_DIR',
];
/** Without these a program on Windows finds neither its libraries nor its user. */
const USUAL_ON_WINDOWS = [
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'NUMBER_OF_PROCESSORS',
  'OS',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'PROGRAMFILES(X86)',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERDOMAIN',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
];
const OURS = 'TOLLBRIDGE_';

export interface SecretVariables {
  /** Prefixes of the variables that a vault reads. */
  readonly prefixes: readonly string[];
  /** Variables with a vault's passphrase. */
  readonly names: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** For a child the configuration names; `more` are the variables configured for it. */
export function minimalEnvironment(
  more: readonly string[] = [],
  env: Environment = process.env,
): Record<string, string> {
  const usual = process.platform === 'win32' ? [...USUAL, ...USUAL_ON_WINDOWS] : USUAL;
  return picked(env, (name) => usual.includes(upper(name)) || more.includes(name));
}

/** For a child that a relay command wraps. */
export function inheritedEnvironment(secret: SecretVariables, env: Environment = process.env): Record<string, string> {
  return picked(env, (name) => !isOurs(name, secret));
}

function isOurs(name: string, { prefixes, names }: SecretVariables): boolean {
  const wanted = upper(name);
  return [OURS, ...prefixes].some((prefix) => wanted.startsWith(upper(prefix))) || names.map(upper).includes(wanted);
}

/** Windows treats `Path` and `PATH` as the same variable. */
function upper(name: string): string {
  return process.platform === 'win32' ? name.toUpperCase() : name;
}

function picked(env: Environment, wanted: (name: string) => boolean): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined || !wanted(name) ? [] : [[name, value]])),
  );
}
