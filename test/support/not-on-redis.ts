/** Tests over HTTP that are not run once more with Redis behind them: files, and in files single tests; each with the reason. */
export const filesNotOnRedis: Record<string, string> = {
  'broken-files.test.ts': 'about files',
  'canary.test.ts': 'reads the database file',
  'copy-as.test.ts': 'about commands for other programs',
  'home.test.ts': 'about the page',
  'log-files.test.ts': 'a shared store has no log files',
  'long-run.test.ts': 'measures what SQLite holds',
  'metrics.test.ts': 'measures the process',
  'no-internals.test.ts': 'breaks the database file',
  'openai-load.test.ts': 'measures a process of its own',
  'readers.test.ts': 'measures a process of its own',
  'prompt-files.test.ts': 'about files',
  'record-keeper.test.ts': 'about the tables of SQLite',
  'routes-shown.test.ts': 'about the routes, of which search needs the tables of SQLite',
  'search.test.ts': 'about the tables of SQLite',
  'socket-close.test.ts': 'keeps its runs in memory',
  'stats.test.ts': 'about the tables of SQLite',
  'store-health.test.ts': 'breaks the database file',
}

/** By file. */
export const testsNotOnRedis: Record<string, Record<string, string>> = {
  'all-events.test.ts': {
    'positions of no event are refused; a client that reconnects after the log was lost gets the new one':
      'position 99 is yet to come on SQLite, and long ago on Redis, where positions are times',
  },
  'config.test.ts': {
    'port, host and data come from the config; what the caller says wins': 'looks for the database file',
    'the command takes them as well, and its flags win': 'commands look for the database file',
  },
  'delete.test.ts': {
    'the source of a fork is refused while the fork shares its log': 'there a fork is a copy, which shares nothing',
  },
  'failure-told.test.ts': {
    '`run`, `show` and `logs` say all of it; `run --format ui` is a client': 'commands look for the database file',
  },
  'fork-totals.test.ts': {
    'stats and named queries count it once; the tables say what is shared': 'asks the tables of SQLite',
  },
  'live.test.ts': { 'what the server can do': 'SQLite can do more: queries and search' },
  'replay.test.ts': {
    'what is imported is stored without the secrets of the server, wherever they stand': 'asks the tables of SQLite',
  },
  'secret-keys.test.ts': {
    'an input and an output are in no entry, database, event stream or wire; the tool got the real input':
      'reads the database file',
    'without keys nothing is hidden': 'reads the database file',
  },
  'threads.test.ts': {
    'where the server keeps the history: all runs, newest first, page by page, and every message once':
      'the usage that the tables sum up has no total of all tokens; that of the logs has',
  },
  'waiting-tools.test.ts': {
    'tables: the slowest tools, the query slow-tools, and the statistics': 'about the tables of SQLite',
  },
}
