/** The only copy of the version in code; a test compares it with package.json. */
export const VERSION = '0.1.0';
