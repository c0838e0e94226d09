/** The one place the version is written in code; a test holds it to the package's. */
export const VERSION = '0.1.0';
