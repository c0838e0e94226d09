/** Version 1.2: what belongs to the installation of this log. The database has it sealed; `revision` grows with every change. */
export const PRIVATE = `
  CREATE TABLE $S.private_files (name TEXT COLLATE "C" PRIMARY KEY, revision BIGINT NOT NULL UNIQUE, sealed BYTEA NOT NULL);
  CREATE TABLE $S.private_acts (ask TEXT COLLATE "C" PRIMARY KEY, sealed BYTEA NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT now());
`;
