/** Words the public suite goes by: states, what may follow them, what must not be shown. */
export const STATES = ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'];
export const NEXT: Readonly<Record<string, readonly string[]>> = {
  SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
  WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
};
export const ENDS = ['COMPLETED', 'FAILED', 'CANCELED'];
export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
export const SECRET_WORDS = ['access_token', 'refresh_token', 'client_secret', 'private_key'];
