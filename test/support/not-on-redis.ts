/** Tests over HTTP that are not run once more with Redis behind them: files, and in files single tests; each with the reason. */
export const filesNotOnRedis: Record<string, string> = {
  'broken-files.test.ts': 'about files',
  'canary.test.ts': 'reads the database file',
  'long-run.test.ts': 'measures what SQLite holds',
  'metrics.test.ts': 'measures the process',
  'no-internals.test.ts': 'breaks the database file',
  'openai-load.test.ts': 'measures a process of its own',
  'readers.test.ts': 'measures a process of its own',
  'search.test.ts': 'about the tables of SQLite',
  'stats.test.ts': 'about the tables of SQLite',
  'store-health.test.ts': 'breaks the database file',
}

export const testsNotOnRedis: Record<string, string> = {
  'port, host and data come from the config; what the caller says wins': 'looks for the database file',
  'an input and an output are in no entry, database, event stream or wire; the tool got the real input':
    'reads the database file',
  'without keys nothing is hidden': 'reads the database file',
  'what is imported is stored without the secrets of the server, wherever they stand': 'asks the tables of SQLite',
  'stats and named queries count it once; the tables say what is shared': 'asks the tables of SQLite',
  'what the server can do': 'SQLite can do more: queries and search',
  'positions of no event are refused; a client that reconnects after the log was lost gets the new one':
    'position 99 is yet to come on SQLite, and long ago on Redis, where positions are times',
  // These do not hold yet.
  'a monitor that does not read costs what its socket holds, whatever 1000 runs say; then it gets all of it':
    'to be mended: nothing is counted as held back',
  'answered over AG-UI and by useChat at once: one counts, the other is told':
    'to be mended: the log is read before its end is there',
  'the same; a result before the approval is refused':
    'to be mended: over Socket.IO the result is refused behind the approval as well',
  'a client that leaves after the answer’s end, but before it has read it, stops nothing':
    'to be mended: the owner sees nobody and posts the disconnect policy',
  'ended runs and conversations go with their files; active ones, and sources of forks, are refused with the cure':
    'to be mended: the source of a fork is deleted',
}
